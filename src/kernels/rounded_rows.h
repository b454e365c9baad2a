#pragma once

#include "kernels/kernels.h"

namespace sol::kernels {

// Rows of x as bf16, `stride` elements apart, zeros behind the first `in` of them, in memory that
// stays valid until this thread's next call.
const bf16* rounded_rows(const float* x, int64_t x_stride, int rows, int in, int64_t stride);

}  // namespace sol::kernels
