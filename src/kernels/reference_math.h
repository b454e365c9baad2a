// Small functions of the readable reference: element access and the one order of summation.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "kernels/compressed.h"

// The reference is one set of functions among the others, declared in the same place.
#define SOL_ISA_NAME reference
#include "kernels/isa/functions.h"
#undef SOL_ISA_NAME

namespace sol::kernels::reference {

// Every dot product and every sum of this program is taken in 16 interleaved lanes (element i goes
// to lane i % 16, fused), which are then folded pairwise: l with l+8, l+4, l+2, l+1. It is the
// order that a 512-bit vector takes, so that all instruction sets can agree bit for bit.
inline constexpr int kLanes = 16;

inline float fold(float (&lane)[kLanes]) {
  for (int half = kLanes / 2; half > 0; half /= 2)
    for (int l = 0; l < half; ++l) lane[l] += lane[l + half];
  return lane[0];
}

template <typename T>
float dot(const float* x, const T* y, int n) {
  float lane[kLanes] = {};
  for (int i = 0; i < n; ++i) lane[i % kLanes] = std::fma(x[i], to_float(y[i]), lane[i % kLanes]);
  return fold(lane);
}

inline float sum(const float* x, int n) {
  float lane[kLanes] = {};
  for (int i = 0; i < n; ++i) lane[i % kLanes] += x[i];
  return fold(lane);
}

// Calls body with a typed null pointer, so that one generic lambda serves both element types.
template <typename Body>
void with_type(ElementType type, const Body& body) {
  if (type == ElementType::f32)
    body(static_cast<const float*>(nullptr));
  else
    body(static_cast<const bf16*>(nullptr));
}

// One row of a matrix, whatever it is stored as (reference_compressed.cpp): int8's codes and the
// scale that all of them have, or numbers and 1.
struct StoredRow {
  std::vector<float> summands;
  float scale = 1;
};
StoredRow stored_row(const WeightView& w, int64_t row);

// Codes and scales one by one.
int code_value(const WeightView& w, int64_t row, int column);    // int8's code, int4's value
float code_scale(const WeightView& w, int64_t row, int column);  // of the row, of the group

// Products with compressed weights (reference_fixed_point.cpp): one row of x; the latter adds n
// channels, listed or the first n, to y.
void fixed_out_major(const WeightView& w, const float* x, int out_begin, int out_end, float* y);
void fixed_in_major(const WeightView& w, const float* x, const int* channels, int n, int out_begin,
                    int out_end, float* y);

}  // namespace sol::kernels::reference
