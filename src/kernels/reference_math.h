// Small helpers of the readable reference: element access and the one order of summation.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "kernels/kernels.h"

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

// One row of a matrix, whatever it is stored as (reference_compressed.cpp): what products sum, and
// the scale outside of the sum, 1 unless there are int8 codes.
struct StoredRow {
  std::vector<float> summands;
  float scale = 1;
};
StoredRow stored_row(const WeightView& w, int64_t row);
void compress_row(const float* x, int n, WeightType type, std::byte* row);
// Products of codes with codes.
void quantise_row(const float* x, int n, int8_t* codes, float* scale);
void integer_out_major(const WeightView& w, const int8_t* x, int64_t x_stride, const float* x_scale,
                       int rows, int out_begin, int out_end, float* y, int64_t y_stride);
void integer_in_major(const WeightView& w, const int8_t* x, int64_t x_stride, const float* x_scale,
                      int rows, const int* channels, int n, int out_begin, int out_end, float* y,
                      int64_t y_stride);

extern const Kernels table;

}  // namespace sol::kernels::reference
