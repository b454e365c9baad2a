// Small BF16 products on the calling thread alone, through oneDNN: the two of tiled attention.
#pragma once

#include "base/bfloat16.h"
#include "kernels/kernels.h"

namespace sol::kernels {

// y[r * y_stride + o] = Σ_i a[r * a_stride + i] * B(i, o), or += where `accumulate`, for rows x out
// results over `in` elements; B is dense, [out][in] (out_major) or [in][out] (in_major). y float32.
struct TileProduct {
  int rows, in, out;
  int64_t a_stride;
  Layout b_layout;
  int64_t y_stride;
  bool accumulate;
  bool operator==(const TileProduct&) const = default;
};

// Whether tile_product() can be called: oneDNN multiplies bf16 fast within the current instruction
// set.
bool have_tile_products();

// Compiled once per shape and thread.
void tile_product(const TileProduct& shape, const bf16* a, const bf16* b, float* y);

}  // namespace sol::kernels
