#include "kernels/int8_scales.h"

#include <cstring>

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

}  // namespace sol::kernels
