// Vectors of 16 floats, the same on every instruction set: one 512-bit register or two 256-bit
// ones. With one width the order of every sum is the same everywhere (reference_math.h).
//
// Files in this folder are compiled once per instruction set, inside a namespace of that set's
// name. Nothing here may use inline functions or templates from outside that namespace: the linker
// keeps one copy of those for the whole program, and it could be the one with instructions that the
// machine lacks.
#pragma once

#ifndef SOL_ISA_NAME
#error "compile through sol_kernel_isa() (src/kernels/CMakeLists.txt)"
#endif

#include <immintrin.h>

#include "kernels/compressed.h"
#include "kernels/kernels.h"

namespace sol::kernels::SOL_ISA_NAME {

inline constexpr int kWidth = 16;

// How much of a vector is in memory: all of it, or its first `n` elements (0..15); the rest reads
// as zero.
struct All {};
struct First {
  int n;
};

// Calls body(i, All) for every whole vector of [0, n), then body(i, First) for the remainder.
template <typename Body>
inline void for_vectors(int n, const Body& body) {
  int i = 0;
  for (; i + kWidth <= n; i += kWidth) body(i, All{});
  if (i < n) body(i, First{n - i});
}

// Whether 64 bytes of a row begin with an element, known to the compiler: what is done once per
// cache line (prefetching) then takes no test and no branch, which measurably slows loops that wait
// for memory.
struct NewLine {
  static constexpr bool begins = true;
};
struct SameLine {
  static constexpr bool begins = false;
};

// Calls body.operator()<R>(first) for [0, n): groups of Most, then smaller ones.
template <int Most, typename Body>
inline void for_groups(int n, const Body& body) {
  int i = 0;
  for (; i + Most <= n; i += Most) body.template operator()<Most>(i);
  if constexpr (Most > 1) {
    if (i < n)
      for_groups<(Most + 1) / 2>(n - i, [&]<int R>(int j) { body.template operator()<R>(i + j); });
  }
}

// Calls body with a typed null pointer, so that one generic lambda serves both element types.
template <typename Body>
inline void with_type(ElementType type, const Body& body) {
  if (type == ElementType::f32)
    body(static_cast<const float*>(nullptr));
  else
    body(static_cast<const bf16*>(nullptr));
}

// The same for matrices that are not compressed.
template <typename Body>
inline void with_type(WeightType type, const Body& body) {
  with_type(type == WeightType::f32 ? ElementType::f32 : ElementType::bf16, body);
}
inline bool holds_codes(WeightType type) {
  return type == WeightType::int8 || type == WeightType::int4;
}

constexpr int smaller(int a, int b) {
  return a < b ? a : b;
}

inline constexpr float kInfinity = __builtin_inff();

}  // namespace sol::kernels::SOL_ISA_NAME

#ifdef __AVX512F__
#include "kernels/isa/simd_avx512.h"
#else
#include "kernels/isa/simd_avx2.h"
#endif

namespace sol::kernels::SOL_ISA_NAME {

inline float reduce_add(Vec a) {
  float sums[4];
  reduce_add4(a, a, a, a, sums);
  return sums[0];
}

// The largest element that is not NaN, or -infinity.
inline float reduce_max(Vec a) {
  float lanes[kWidth];
  store(lanes, a, All{});
  float largest = -kInfinity;
  for (const float lane : lanes) largest = lane > largest ? lane : largest;
  return largest;
}

// The part that is in memory, zero elsewhere.
inline Vec keep(Vec a, All) {
  return a;
}
inline Vec keep(Vec a, First f) {
  return select(first_lanes(f.n), a, zero());
}

inline float square_root(float x) {
  return _mm_cvtss_f32(_mm_sqrt_ss(_mm_set_ss(x)));
}

// Whole vectors are the common case.
template <typename T>
inline Vec load(const T* p) {
  return load(p, All{});
}
template <typename T>
inline void store(T* p, Vec v) {
  store(p, v, All{});
}

}  // namespace sol::kernels::SOL_ISA_NAME
