#include "kernels/matmul_amx.h"

#include <cassert>
#include <cstring>
#include <vector>

#include "kernels/amx_bf16/products.h"
#include "kernels/rounded_rows.h"
#include "kernels/split_product.h"

namespace sol::kernels {

#ifdef SOL_X86_KERNELS

namespace {

using namespace amx_bf16;  // NOLINT

// From this many rows on tiles are faster than our other kernels, and up to kMostRows faster than
// oneDNN, as measured with bench/kernels_bench on 256x1536 and 2048x8192.
constexpr int kFewestRows = 3;

// Valid until this thread's next call.
RowPairs pairs_of(const Rows& x) {
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

}  // namespace

bool amx_multiplies() {
  return has_avx512(current_isa()) && enable_amx_bf16();
}

std::optional<AmxRows> AmxRows::of(const float* x, int64_t x_stride, int rows, const WeightView& w,
                                   std::span<const int> channels) {
  if (rows < kFewestRows || rows > kMostRows || !amx_multiplies()) return std::nullopt;
  const int in = channels.empty() ? w.in : static_cast<int>(channels.size());
  thread_local std::vector<float> kept;
  if (!channels.empty()) {
    assert(w.layout == Layout::in_major);
    kept.resize(static_cast<size_t>(rows) * in);
    for (int r = 0; r < rows; ++r)
      for (int k = 0; k < in; ++k) kept[int64_t{r} * in + k] = x[r * x_stride + channels[k]];
    x = kept.data();
    x_stride = in;
  }
  const int64_t stride = (in + kInputGrain - 1) / kInputGrain * kInputGrain;
  AmxRows out;
  out.rows_ = {rounded_rows(x, x_stride, rows, in, stride), stride, rows};
  if (w.layout == Layout::out_major) out.pairs_ = pairs_of(out.rows_);
  out.channels_ = channels;
  return out;
}

void AmxRows::multiply(const WeightView& w, int begin, int end, float* y, int64_t y_stride) const {
  if (w.layout == Layout::out_major)
    out_major(w, pairs_, begin, end, y, y_stride);
  else
    in_major(w, rows_, channels_.empty() ? nullptr : channels_.data(),
             static_cast<int>(channels_.size()), begin, end, y, y_stride);
}

#else

bool amx_multiplies() {
  return false;
}

std::optional<AmxRows> AmxRows::of(const float*, int64_t, int, const WeightView&,
                                   std::span<const int>) {
  return std::nullopt;
}

void AmxRows::multiply(const WeightView&, int, int, float*, int64_t) const {}

#endif

bool amx_matmul(const float* x, int64_t x_stride, int rows, const WeightView& w,
                std::span<const int> channels, float* y, int64_t y_stride) {
  if (w.type != WeightType::bf16) return false;
  const auto all = AmxRows::of(x, x_stride, rows, w, channels);
  if (!all) return false;
  split_outputs(rows, w, [&](int begin, int end) { all->multiply(w, begin, end, y, y_stride); });
  return true;
}

}  // namespace sol::kernels
