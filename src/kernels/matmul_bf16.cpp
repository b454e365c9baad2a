#include "kernels/matmul_bf16.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <vector>

#include "kernels/avx512_bf16/products.h"
#include "kernels/int8_scales.h"
#include "kernels/split_product.h"

namespace sol::kernels {
namespace {

// From so many rows on units are faster than our float32 kernels. Tiles are faster than oneDNN's up
// to amx_bf16::kMostRows, vectors for any number, as measured with bench/kernels_bench on 256x1536
// and 2048x8192.
constexpr int kFewestRowsOnTiles = 3, kFewestRowsOnVectors = 2;

// Up to four rows our own kernels read int8 codes once, and multiply them as whole numbers.
constexpr int kFewestCodeRows = 5;

// From this many rows for each thread on rows are shared out as well as outputs: few rows sum in
// another order (avx512_bf16/rows.h), and no result may depend on the threads.
constexpr int kRowsPerThread = 32;

}  // namespace

std::optional<Bf16Unit> fastest_unit(int rows) {
  if (rows < std::min(kFewestRowsOnTiles, kFewestRowsOnVectors)) return std::nullopt;
  if (has_unit(Bf16Unit::tiles)) {
    if (rows >= kFewestRowsOnTiles && rows <= amx_bf16::kMostRows) return Bf16Unit::tiles;
  } else if (rows >= kFewestRowsOnVectors && has_unit(Bf16Unit::vectors)) {
    return Bf16Unit::vectors;
  }
  return std::nullopt;
}

bool vectors_multiply_codes(int rows) {
  return rows >= kFewestCodeRows && rows <= avx512_bf16::kMostCodeRows &&
         fastest_unit(rows) == Bf16Unit::vectors;
}

#ifdef SOL_X86_KERNELS

namespace {

// Valid until this thread's next call.
amx_bf16::RowPairs pairs_of(const RoundedRows& x) {
  using amx_bf16::kPairRows;
  const int64_t pairs = x.stride / 2;
  const int groups = (x.count + kPairRows - 1) / kPairRows;
  thread_local std::vector<int32_t> memory;
  memory.assign(static_cast<size_t>(groups * pairs) * kPairRows, 0);
  for (int r = 0; r < x.count; ++r) {
    int32_t* to = memory.data() + r / kPairRows * pairs * kPairRows + r % kPairRows;
    const bf16* from = x.rows + r * x.stride;
    for (int64_t i = 0; i < pairs; ++i)
      std::memcpy(to + i * kPairRows, from + 2 * i, sizeof(int32_t));
  }
  return {memory.data(), x.stride, x.count};
}

// The listed channels of x, row after row. Valid until this thread's next call.
const float* gathered(const float* x, int64_t x_stride, int rows, std::span<const int> channels) {
  thread_local std::vector<float> memory;
  memory.resize(static_cast<size_t>(rows) * channels.size());
  float* to = memory.data();
  for (int r = 0; r < rows; ++r)
    for (const int channel : channels) *to++ = x[r * x_stride + channel];
  return memory.data();
}

}  // namespace

bool has_unit(Bf16Unit unit) {
  if (unit == Bf16Unit::tiles) return has_avx512(current_isa()) && enable_amx_bf16();
  return current_isa() == Isa::avx512_vnni && cpu_has_avx512_bf16();
}

NarrowRows::NarrowRows(Bf16Unit unit, const float* x, int64_t x_stride, int rows,
                       const WeightView& w, std::span<const int> channels)
    : unit_(unit), channels_(channels) {
  int in = w.in;
  if (!channels.empty()) {
    assert(w.layout == Layout::in_major);
    in = static_cast<int>(channels.size());
    x = gathered(x, x_stride, rows, channels);
    x_stride = in;
  }
  constexpr int kGrain = amx_bf16::kInputGrain;
  int64_t stride = (in + kGrain - 1) / kGrain * kGrain;
  // Rows a multiple of 4 KB apart would share a few places in the first-level cache.
  if (unit == Bf16Unit::vectors) stride += kGrain;
  rows_ = {rounded_rows(x, x_stride, rows, in, stride), stride, rows};
  if (unit == Bf16Unit::tiles && w.layout == Layout::out_major) pairs_ = pairs_of(rows_);
}

void NarrowRows::multiply(const WeightView& w, int begin, int end, float* y,
                          int64_t y_stride) const {
  const int* channels = channels_.empty() ? nullptr : channels_.data();
  const int n = static_cast<int>(channels_.size());
  const bool by_output = w.layout == Layout::out_major;
  if (unit_ == Bf16Unit::tiles) {
    if (by_output)
      amx_bf16::out_major(w, pairs_, begin, end, y, y_stride);
    else
      amx_bf16::in_major(w, rows_, channels, n, begin, end, y, y_stride);
  } else {
    multiply_rows({0, rows_.count}, w, begin, end, y, y_stride);
  }
}

void NarrowRows::multiply_rows(const Range& rows, const WeightView& w, int begin, int end, float* y,
                               int64_t y_stride) const {
  assert(unit_ == Bf16Unit::vectors);
  const RoundedRows x{rows_.rows + rows.begin * rows_.stride, rows_.stride,
                      static_cast<int>(rows.end - rows.begin)};
  y += rows.begin * y_stride;
  if (w.layout == Layout::out_major)
    avx512_bf16::out_major(w, x, begin, end, y, y_stride);
  else
    avx512_bf16::in_major(w, x, channels_.empty() ? nullptr : channels_.data(),
                          static_cast<int>(channels_.size()), begin, end, y, y_stride);
}

#else

bool has_unit(Bf16Unit) {
  return false;
}

NarrowRows::NarrowRows(Bf16Unit unit, const float*, int64_t, int, const WeightView&,
                       std::span<const int>)
    : unit_(unit) {
  assert(false);
}

void NarrowRows::multiply(const WeightView&, int, int, float*, int64_t) const {}
void NarrowRows::multiply_rows(const Range&, const WeightView&, int, int, float*, int64_t) const {}

#endif

void bf16_matmul(Bf16Unit unit, const float* x, int64_t x_stride, int rows, const WeightView& w,
                 std::span<const int> channels, float* y, int64_t y_stride) {
  assert(w.type == WeightType::bf16);
  const NarrowRows all(unit, x, x_stride, rows, w, channels);
  if (unit == Bf16Unit::vectors && rows >= kRowsPerThread * thread_count())
    return split_product(rows, w, w.in, [&](const Range& r, const Range& o) {
      all.multiply_rows(r, w, static_cast<int>(o.begin), static_cast<int>(o.end), y, y_stride);
    });
  split_outputs(rows, w, [&](int begin, int end) { all.multiply(w, begin, end, y, y_stride); });
}

void codes_matmul(const float* x, int64_t x_stride, int rows, const WeightView& w, float* y,
                  int64_t y_stride) {
  assert(w.type == WeightType::int8 && vectors_multiply_codes(rows));
  const CodeInputs inputs = code_inputs(x, x_stride, rows, w);
  const NarrowRows all(Bf16Unit::vectors, inputs.rows, inputs.stride, rows, w, {});
  split_outputs(rows, w, [&](int begin, int end) { all.multiply(w, begin, end, y, y_stride); });
  scale_outputs(y, y_stride, rows, w);
}

}  // namespace sol::kernels
