// Products of rows, rounded to bf16, with bf16 weights or int8 codes by AVX512-BF16's instruction,
// which multiplies pairs of inputs. For few rows, which wait for the weights, oneDNN takes two to
// three times as long as reading them does, as it rearranges them first; for many its products of
// in_major weights take a sixth longer. To be called only where matmul_bf16.h says that the
// instruction is there.
#pragma once

#include "kernels/rounded_rows.h"

namespace sol::kernels::avx512_bf16 {

// y[r][o] for o in [out_begin, out_end) of y = x·W, W bf16 of the named layout; rows of y are
// y_stride elements apart. Behind the inputs of x, where their number is odd, lies one zero. Input
// k is W's channel channels[k] of `n`; all of them in order where channels is null. Others are not
// read. Sums in float32 of the products of pairs of inputs; y[r][o] depends neither on the range
// nor on the other rows, but the order of summation on whether they are few (rows.h). Subnormal
// numbers count as zero.
//
// Where x has at most kMostCodeRows rows and all channels count, W may be int8: its codes are
// multiplied, without their scales.
inline constexpr int kMostCodeRows = 16;
void out_major(const WeightView& w, const RoundedRows& x, int out_begin, int out_end, float* y,
               int64_t y_stride);
void in_major(const WeightView& w, const RoundedRows& x, const int* channels, int n, int out_begin,
              int out_end, float* y, int64_t y_stride);

}  // namespace sol::kernels::avx512_bf16
