// Products through oneDNN, the weights used where they lie.
#pragma once

#include "kernels/kernels.h"

namespace sol::kernels {

// Whether oneDNN has a fast way to multiply this type within the current instruction set: not bf16
// without AVX512_BF16 or AMX, and nothing when an instruction set was chosen after oneDNN was first
// used with a better one.
bool dnnl_multiplies(ElementType type);

// As matmul() with weights that are not compressed, computed by oneDNN on all threads (on the
// caller's alone inside a parallel region). x is rounded to bf16 when the weights are. Returns
// false, having done nothing, when oneDNN has no fast way to do it.
bool dnnl_matmul(const float* x, int64_t x_stride, int rows, const WeightView& w, float* y,
                 int64_t y_stride);

// The same of rows that are rounded already (rounded_rows.h), so that x is rounded once for several
// products.
bool dnnl_matmul_rounded(const bf16* x, int rows, const WeightView& w, float* y, int64_t y_stride);

// The sums of an integer product (kernels.h), as floats without any scale, of every channel of int8
// weights. Returns false, having done nothing, when oneDNN has no fast and exact way to do it.
bool dnnl_code_sums(const int8_t* x, int64_t x_stride, int rows, const WeightView& w, float* y,
                    int64_t y_stride);

}  // namespace sol::kernels
