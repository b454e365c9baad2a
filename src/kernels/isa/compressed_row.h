// Reading compressed rows (kernels/compressed.h), a group of 32 weights at a time.
#pragma once

#include "kernels/isa/simd.h"

namespace sol::kernels::SOL_ISA_NAME {

inline constexpr int kGroup = kCodeGroup;
static_assert(kGroup == 2 * kWidth);

inline int groups_of(int n) {
  return (n + kGroup - 1) / kGroup;
}

// Rows of 8-bit codes. Their one scale stays outside of sums.
struct Int8Rows {
  static constexpr int kGroupBytes = kGroup;
  static constexpr bool kScaleOutside = true;
  static float row_scale(const std::byte* row, int n) {
    float lanes[kWidth];
    store(lanes,
          load(reinterpret_cast<const bf16*>(row + int64_t{groups_of(n)} * kGroupBytes), First{1}),
          All{});
    return lanes[0];
  }
  // Scales of groups [begin, begin + count) of a row of n weights.
  static void load_scales(const std::byte*, int, int, int, float*) {}
  // What is summed: the codes.
  void load_group(const std::byte* codes, const float*, Vec& first, Vec& second) const {
    first = load_int8(codes);
    second = load_int8(codes + kWidth);
  }
};

// Rows of 4-bit codes.
struct Int4Rows {
  static constexpr int kGroupBytes = kGroup / 2;
  static constexpr bool kScaleOutside = false;
  static float row_scale(const std::byte*, int) { return 1.0f; }  // exact to multiply by
  static const bf16* scales(const std::byte* row, int n) {
    return reinterpret_cast<const bf16*>(row + static_cast<int64_t>(groups_of(n)) * kGroupBytes);
  }
  static void load_scales(const std::byte* row, int n, int begin, int count, float* to) {
    const bf16* stored = scales(row, n) + begin;
    for_vectors(count, [&](int g, auto part) { store(to + g, load(stored + g, part), part); });
  }
  // What is summed: the weights.
  void load_group(const std::byte* codes, const float* scale, Vec& first, Vec& second) const {
    load_int4(codes, values, *scale, first, second);
  }
  const Vec values = load_int8(reinterpret_cast<const std::byte*>(kInt4Values));
};

// The scales of up to four groups, each to a quarter of the lanes; zero where there is none.
inline Vec spread(const bf16* scales, First groups) {
  bf16 four[4] = {};
  for (int g = 0; g < groups.n; ++g) four[g] = scales[g];
  return spread(four, All{});
}

// Calls body with the reader of a compressed type.
template <typename Body>
inline void with_codes(WeightType type, const Body& body) {
  if (type == WeightType::int8)
    body(Int8Rows{});
  else
    body(Int4Rows{});
}

inline const std::byte* row_at(const WeightView& w, int64_t row) {
  return static_cast<const std::byte*>(w.data) + row * w.stride;
}

// Calls body(g, line) for every group of [0, n); `line` tells where 64 bytes of codes begin,
// counted from the first; not for what is left over at the end.
template <typename Codes, typename Body>
inline void for_code_groups(int n, const Body& body) {
  constexpr int kLine = 64 / Codes::kGroupBytes;
  int g = 0;
  for (; g + kLine <= n; g += kLine) {
    body(g, NewLine{});
    for (int k = 1; k < kLine; ++k) body(g + k, SameLine{});
  }
  for (; g < n; ++g) body(g, SameLine{});
}

// Both halves of the group of floats at p, of which `left` are in memory; the rest reads as zero.
inline void load_pair(const float* p, int left, Vec& first, Vec& second) {
  if (left >= kGroup) {
    first = load(p);
    second = load(p + kWidth);
  } else if (left >= kWidth) {
    first = load(p);
    second = load(p + kWidth, First{left - kWidth});
  } else {
    first = load(p, First{left});
    second = zero();
  }
}
inline void store_numbers(float* p, Vec first, Vec second) {
  store(p, first);
  store(p + kWidth, second);
}
inline void store_exact(float* p, Vec first, Vec second) {
  store_numbers(p, first, second);
}
template <typename T>
inline void store_pair(T* p, int left, Vec first, Vec second) {
  if (left >= kGroup) {
    store_numbers(p, first, second);
  } else if (left >= kWidth) {
    store(p, first);
    if (left > kWidth) store(p + kWidth, second, First{left - kWidth});
  } else {
    store(p, first, First{left});
  }
}

}  // namespace sol::kernels::SOL_ISA_NAME
