#include "kernels/int8_scales.h"

#include <cstring>

#include "base/large_memory.h"
#include "base/threads.h"
#include "kernels/compressed.h"

namespace sol::kernels {
namespace {

// to[r][i] = from[r][i] * scales[i].
void scale_rows(const float* from, int64_t from_stride, int rows, const std::vector<float>& scales,
                float* to, int64_t to_stride) {
  const float* const factors = scales.data();
  const auto n = static_cast<int64_t>(scales.size());
  const auto scale = [&](int64_t r) {
    for (int64_t i = 0; i < n; ++i) to[r * to_stride + i] = from[r * from_stride + i] * factors[i];
  };
  // Below this many elements waking the other threads costs more than they save.
  constexpr int64_t kWorthThreads = 1 << 15;
  if (rows * n >= kWorthThreads) return parallel_for(rows, scale);
  for (int64_t r = 0; r < rows; ++r) scale(r);
}

}  // namespace

void int8_scales(const WeightView& w, std::span<const int> rows, std::vector<float>& scales) {
  const bool by_output = w.layout == Layout::out_major;
  const int64_t offset = code_bytes(WeightType::int8, by_output ? w.in : w.out);
  const size_t count = rows.empty() ? static_cast<size_t>(by_output ? w.out : w.in) : rows.size();
  scales.resize(count);
  float* to = scales.data();
  const auto gather = [&](int64_t i) {
    const int64_t row = rows.empty() ? i : rows[static_cast<size_t>(i)];
    bf16 scale;
    std::memcpy(&scale, static_cast<const std::byte*>(w.data) + row * w.stride + offset,
                sizeof(scale));
    to[i] = to_float(scale);
  };
  // A cache line each: worth the other threads only for a vocabulary.
  constexpr size_t kWorthThreads = 1 << 14;
  if (count >= kWorthThreads) return parallel_for(static_cast<int64_t>(count), gather);
  for (size_t i = 0; i < count; ++i) gather(static_cast<int64_t>(i));
}

CodeInputs code_inputs(const float* x, int64_t x_stride, int rows, const WeightView& w) {
  if (w.layout == Layout::out_major) return {x, x_stride};
  thread_local std::vector<float> scales;
  thread_local LargeVector<float> scaled;
  int8_scales(w, {}, scales);
  scaled.resize(static_cast<size_t>(rows) * static_cast<size_t>(w.in));
  float* const to = scaled.data();
  scale_rows(x, x_stride, rows, scales, to, w.in);
  return {to, w.in};
}

void scale_outputs(float* y, int64_t y_stride, int rows, const WeightView& w) {
  if (w.layout == Layout::in_major) return;
  thread_local std::vector<float> scales;
  int8_scales(w, {}, scales);
  scale_rows(y, y_stride, rows, scales, y, y_stride);
}

}  // namespace sol::kernels
