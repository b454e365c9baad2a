// Products of few rows with bf16 weights on AMX tiles, by our own kernels (amx_bf16/).
#pragma once

#include <span>

#include "kernels/kernels.h"

namespace sol::kernels {

// Whether this machine has AMX, within the current instruction set. Asks the system for it.
bool amx_multiplies();

// As matmul() with x rounded to bf16, on all threads; where channels are listed, ascending, as
// matmul_kept(). Returns false, having done nothing, when there is no AMX, or it does not pay: W is
// not bf16, or there are too few or too many rows.
bool amx_matmul(const float* x, int64_t x_stride, int rows, const WeightView& w,
                std::span<const int> channels, float* y, int64_t y_stride);

}  // namespace sol::kernels
