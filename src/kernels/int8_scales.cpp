#include "kernels/int8_scales.h"

#include <cstring>

#include "base/large_memory.h"
#include "base/threads.h"
#include "kernels/compressed.h"

namespace sol::kernels {

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

CodeInputs code_inputs(const float* x, int64_t x_stride, int rows, const WeightView& w,
                       std::span<const int> channels) {
  if (w.layout == Layout::out_major) return {x, x_stride};
  thread_local std::vector<float> scales;
  thread_local LargeVector<float> scaled;
  int8_scales(w, channels, scales);
  scaled.resize(static_cast<size_t>(rows) * static_cast<size_t>(w.in));
  const float* const of_channel = scales.data();
  float* const memory = scaled.data();
  parallel_for(rows, [&](int64_t r) {
    const float* from = x + r * x_stride;
    float* to = memory + r * w.in;
    for (size_t k = 0; k < channels.size(); ++k) {
      const int channel = channels[k];
      to[channel] = from[channel] * of_channel[k];
    }
    if (!channels.empty()) return;
    for (int i = 0; i < w.in; ++i) to[i] = from[i] * of_channel[i];
  });
  return {memory, w.in};
}

void scale_outputs(float* y, int64_t y_stride, int rows, const WeightView& w) {
  if (w.layout == Layout::in_major) return;
  thread_local std::vector<float> scales;
  int8_scales(w, {}, scales);
  const float* const of_output = scales.data();
  parallel_for(rows, [&](int64_t r) {
    for (int o = 0; o < w.out; ++o) y[r * y_stride + o] *= of_output[o];
  });
}

}  // namespace sol::kernels
