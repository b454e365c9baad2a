#include "kernels/int8_scales.h"

#include <cstring>

#include "kernels/compressed.h"

namespace sol::kernels {

void int8_scales(const WeightView& w, std::span<const int> rows, std::vector<float>& scales) {
  const bool by_output = w.layout == Layout::out_major;
  const int64_t offset = code_bytes(WeightType::int8, by_output ? w.in : w.out);
  const size_t count = rows.empty() ? static_cast<size_t>(by_output ? w.out : w.in) : rows.size();
  scales.resize(count);
  for (size_t i = 0; i < count; ++i) {
    const int64_t row = rows.empty() ? static_cast<int64_t>(i) : rows[i];
    bf16 scale;
    std::memcpy(&scale, static_cast<const std::byte*>(w.data) + row * w.stride + offset,
                sizeof(scale));
    scales[i] = to_float(scale);
  }
}

}  // namespace sol::kernels
