#include "kernels/compressed.h"

#include <cmath>
#include <cstring>

#include "base/fail.h"

namespace sol::kernels {
namespace {

constexpr int64_t round_up(int64_t n, int64_t to) {
  return (n + to - 1) / to * to;
}

int scale_count(WeightType type, int n) {
  return type == WeightType::int8 ? 1 : (n + kCodeGroup - 1) / kCodeGroup;
}

}  // namespace

std::string_view to_string(WeightType type) {
  switch (type) {
    case WeightType::f32:
      return "f32";
    case WeightType::bf16:
      return "bf16";
    case WeightType::int8:
      return "int8";
    case WeightType::int4:
      return "int4";
  }
  fail("unknown weight type number {}", static_cast<int>(type));
}

int64_t code_bytes(WeightType type, int n) {
  const int64_t codes = round_up(n, kCodeGroup);
  return type == WeightType::int8 ? codes : codes / 2;
}

int64_t row_bytes(WeightType type, int n) {
  switch (type) {
    case WeightType::f32:
      return int64_t{4} * n;
    case WeightType::bf16:
      return int64_t{2} * n;
    case WeightType::int8:
    case WeightType::int4:
      break;
  }
  const int64_t scales = static_cast<int64_t>(sizeof(bf16)) * scale_count(type, n);
  return round_up(code_bytes(type, n) + scales, kRowAlignment);
}

int64_t dense_stride(WeightType type, int n) {
  return is_compressed(type) ? row_bytes(type, n) : n;
}

int64_t matrix_bytes(const WeightView& w) {
  const bool by_output = w.layout == Layout::out_major;
  return (by_output ? w.out : w.in) * row_bytes(w.type, by_output ? w.in : w.out);
}

int first_bad_scale(const std::byte* row, WeightType type, int n) {
  const std::byte* scales = row + code_bytes(type, n);
  for (int s = 0; s < scale_count(type, n); ++s) {
    bf16 scale;
    std::memcpy(&scale, scales + static_cast<int64_t>(sizeof(bf16)) * s, sizeof(bf16));
    if (!(std::abs(to_float(scale)) < kScaleLimit)) return s;
  }
  return -1;
}

int first_bad_code(const std::byte* row, WeightType type, int n) {
  if (type != WeightType::int8) return -1;
  const void* found = std::memchr(row, 0x80, static_cast<size_t>(n));
  return found ? static_cast<int>(static_cast<const std::byte*>(found) - row) : -1;
}

}  // namespace sol::kernels
