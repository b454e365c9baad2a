// Products of many rows with compressed weights, as bf16 or float32.
#pragma once

#include "kernels/kernels.h"

namespace sol::kernels {

// As matmul(): panels of the matrix are widened to `type`, which stay in the second-level cache,
// and multiplied by oneDNN or, with bf16, by what matmul_bf16.h has for so many rows. With bf16 its
// operands are rounded: int4 weights, and x, times the channels' scales where W is in_major int8;
// int8 codes are exact. Returns false when oneDNN has no fast way to do it; y is then still to be
// computed.
bool widened_matmul(const float* x, int64_t x_stride, int rows, const WeightView& w, float* y,
                    int64_t y_stride, ElementType type);

}  // namespace sol::kernels
