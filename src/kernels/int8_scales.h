// The scales of int8 matrices, which lie apart, one at the end of each row, as a vector.
#pragma once

#include <span>
#include <vector>

#include "kernels/kernels.h"

namespace sol::kernels {

// Of the listed rows, or of all rows where none are listed.
void int8_scales(const WeightView& w, std::span<const int> rows, std::vector<float>& scales);

}  // namespace sol::kernels
