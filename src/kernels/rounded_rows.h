#pragma once

#include "kernels/kernels.h"

namespace sol::kernels {

// Inputs of products as bf16: row r begins at rows + r * stride.
struct RoundedRows {
  const bf16* rows = nullptr;
  int64_t stride = 0;
  int count = 0;
};

// Rows of x as bf16, `stride` elements apart, zeros behind the first `in` of them, in memory that
// stays valid until this thread's next call.
const bf16* rounded_rows(const float* x, int64_t x_stride, int rows, int in, int64_t stride);

}  // namespace sol::kernels
