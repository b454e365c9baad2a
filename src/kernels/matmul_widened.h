// Products of many rows with compressed weights through oneDNN.
#pragma once

#include "kernels/kernels.h"

namespace sol::kernels {

// As matmul(): panels of the matrix are widened to bf16 (to f32 where oneDNN does not multiply
// bf16), which stay in the second-level cache, and multiplied by oneDNN. With bf16 panels x is
// rounded to bf16 as well, and so are the products scale * code. Returns false, having done nothing
// to y that matters, when oneDNN has no fast way to do it.
bool widened_matmul(const float* x, int64_t x_stride, int rows, const WeightView& w, float* y,
                    int64_t y_stride);

}  // namespace sol::kernels
