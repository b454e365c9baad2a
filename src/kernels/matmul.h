// Products of rows with a weight matrix, on all threads.
#pragma once

#include <span>

#include "kernels/kernels.h"

namespace sol::kernels {

// library: oneDNN (AMX or AVX-512 for bf16, sgemm for f32) where it pays, our own kernels else, on
// AMX and by AVX512-BF16 too; library_f32: the same, but compressed weights and x are never rounded
// to bf16; own: only our own kernels, one order of summation: row results do not depend on `rows`
// or threads. The reference instruction set always uses its own products.
enum class MatmulMode { library, library_f32, own };

// y[r * y_stride + o] = Σ_i x[r * x_stride + i] * W(i, o) for r < rows. x and y float32. The
// library rounds x to bf16 with bf16 weights, and with compressed ones where the processor
// multiplies bf16; so do our own kernels of matmul_bf16.h.
void matmul(const float* x, int64_t x_stride, int rows, const WeightView& w, float* y,
            int64_t y_stride, MatmulMode mode);

// The same of the listed channels alone, ascending, by our own kernels: W is in_major, and the
// other channels' weights are not read.
void matmul_kept(const float* x, int64_t x_stride, int rows, const WeightView& w,
                 std::span<const int> channels, float* y, int64_t y_stride, MatmulMode mode);

// Integer products (not in the paper; docs/arithmetic.md): W is int8 with at most
// kMostIntegerInputs inputs, and each row of x, times the channels' scales where W is in_major, is
// rounded to 8 bits with one scale. Of an in_major W the listed channels alone count, ascending,
// and the others are not read; an empty list means all. The same bits in every mode. A row of x
// that is not finite gives a row of NaN.
void integer_matmul(const float* x, int64_t x_stride, int rows, const WeightView& w,
                    std::span<const int> channels, float* y, int64_t y_stride, MatmulMode mode);

}  // namespace sol::kernels
