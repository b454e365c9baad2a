// Products of few rows, rounded to bf16, with bf16 weights on AMX tiles: for batches whose products
// wait for the weights. oneDNN rearranges the weights on every call, which takes several times as
// long as reading them. To be called only where matmul_bf16.h says that AMX is there.
#pragma once

#include "kernels/rounded_rows.h"

namespace sol::kernels::amx_bf16 {

inline constexpr int kMostRows = 32;
// Rows end with zeros up to a multiple of so many inputs.
inline constexpr int kInputGrain = 32;
inline constexpr int kPairRows = 16;

// Up to kMostRows rows by pairs of inputs, for kPairRows rows at a time; zeros where there is none:
// [(count + kPairRows - 1) / kPairRows][stride / 2][kPairRows] pairs of bf16.
struct RowPairs {
  const int32_t* pairs = nullptr;
  int64_t stride = 0;
  int count = 0;
};

// Rows of x end with zeros, and their stride is a multiple of kInputGrain.
//
// y[r][o] for o in [out_begin, out_end) of y = x·W, W bf16 of the named layout; rows of y are
// y_stride elements apart. Input k is W's channel channels[k] of `n`; all of them in order where
// channels is null. Others are not read. Sums in float32 of products of pairs, which are not
// rounded in between; y[r][o] depends neither on the range nor on the other rows. Subnormal numbers
// count as zero.
void out_major(const WeightView& w, const RowPairs& x, int out_begin, int out_end, float* y,
               int64_t y_stride);
void in_major(const WeightView& w, const RoundedRows& x, const int* channels, int n, int out_begin,
              int out_end, float* y, int64_t y_stride);

}  // namespace sol::kernels::amx_bf16
