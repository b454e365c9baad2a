// Products of many rows with compressed weights through oneDNN.
#pragma once

#include "kernels/kernels.h"

namespace sol::kernels {

// As matmul(): panels of the matrix are widened to `type`, which stay in the second-level cache,
// and multiplied by oneDNN. With bf16, x and the products scale * code are rounded to it. Returns
// false when oneDNN has no fast way to do it; y is then still to be computed.
bool widened_matmul(const float* x, int64_t x_stride, int rows, const WeightView& w, float* y,
                    int64_t y_stride, ElementType type);

}  // namespace sol::kernels
