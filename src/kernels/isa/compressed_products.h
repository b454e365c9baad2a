// Products with compressed weights; products.cpp hands over to them. Contracts: kernels.h.
#pragma once

#include "kernels/isa/simd.h"

namespace sol::kernels::SOL_ISA_NAME {

void matmul_out_major_compressed(const WeightView& w, const float* x, int64_t x_stride, int rows,
                                 int out_begin, int out_end, float* y, int64_t y_stride);

// n channels, at least one, listed or (channels == nullptr) the first n.
void stream_channels_compressed(const WeightView& w, const float* x, int64_t x_stride, int rows,
                                const int* channels, int n, int out_begin, int out_end, float* y,
                                int64_t y_stride);

}  // namespace sol::kernels::SOL_ISA_NAME
