#include "kernels/matmul.h"

#include <cassert>

#include "kernels/compressed.h"
#include "kernels/matmul_bf16.h"
#include "kernels/matmul_dnnl.h"
#include "kernels/matmul_widened.h"
#include "kernels/split_product.h"

namespace sol::kernels {
namespace {

// From this many rows on oneDNN is faster than our own kernels, as measured with
// bench/kernels_bench on 256x1536 and 2048x8192: ours read in_major weights, and widen compressed
// ones, once per four rows, where compressed weights must be widened for oneDNN once.
int library_rows(const WeightView& w) {
  const bool by_channel = w.layout == Layout::in_major;
  if (is_compressed(w.type)) return by_channel ? 12 : 9;
  return by_channel ? 5 : 8;
}

// What multiplies rounded rows with bf16 weights here, if anything of our own should.
std::optional<Bf16Unit> narrow_unit(int rows, const WeightView& w, MatmulMode mode) {
  if (mode != MatmulMode::library || w.type != WeightType::bf16) return std::nullopt;
  return fastest_unit(rows);
}

bool library_matmul(const float* x, int64_t x_stride, int rows, const WeightView& w, float* y,
                    int64_t y_stride, MatmulMode mode) {
  const bool narrow = mode == MatmulMode::library && dnnl_multiplies(ElementType::bf16);
  return is_compressed(w.type) ? widened_matmul(x, x_stride, rows, w, y, y_stride,
                                                narrow ? ElementType::bf16 : ElementType::f32)
                               : dnnl_matmul(x, x_stride, rows, w, y, y_stride);
}

void own_matmul(const float* x, int64_t x_stride, int rows, const WeightView& w,
                const int* channels, int n, float* y, int64_t y_stride) {
  const Kernels& k = kernels();
  split_product(rows, w, channels ? n : w.in, [&](const Range& r, const Range& o) {
    const float* from = x + r.begin * x_stride;
    float* to = y + r.begin * y_stride;
    const int begin = static_cast<int>(o.begin), end = static_cast<int>(o.end);
    const int count = static_cast<int>(r.end - r.begin);
    if (w.layout == Layout::in_major)
      k.matmul_in_major(w, from, x_stride, count, channels, n, begin, end, to, y_stride);
    else
      k.matmul_out_major(w, from, x_stride, count, begin, end, to, y_stride);
  });
}

}  // namespace

void matmul(const float* x, int64_t x_stride, int rows, const WeightView& w, float* y,
            int64_t y_stride, MatmulMode mode) {
  if (rows <= 0) return;
  if (const auto unit = narrow_unit(rows, w, mode))
    return bf16_matmul(*unit, x, x_stride, rows, w, {}, y, y_stride);
  if (mode == MatmulMode::library && w.type == WeightType::int8 && vectors_multiply_codes(rows))
    return codes_matmul(x, x_stride, rows, w, y, y_stride);
  if (mode != MatmulMode::own && rows >= library_rows(w) &&
      library_matmul(x, x_stride, rows, w, y, y_stride, mode))
    return;
  own_matmul(x, x_stride, rows, w, nullptr, 0, y, y_stride);
}

void matmul_kept(const float* x, int64_t x_stride, int rows, const WeightView& w,
                 std::span<const int> channels, float* y, int64_t y_stride, MatmulMode mode) {
  assert(!channels.empty() && w.layout == Layout::in_major);
  if (rows <= 0) return;
  if (const auto unit = narrow_unit(rows, w, mode))
    return bf16_matmul(*unit, x, x_stride, rows, w, channels, y, y_stride);
  own_matmul(x, x_stride, rows, w, channels.data(), static_cast<int>(channels.size()), y, y_stride);
}

}  // namespace sol::kernels
