// The scales of int8 matrices, which lie apart, one at the end of each row. Products sum codes: the
// scales multiply x before where channels have them, y after where outputs do.
#pragma once

#include <span>
#include <vector>

#include "kernels/kernels.h"

namespace sol::kernels {

// Of the listed rows, or of all rows where none are listed.
void int8_scales(const WeightView& w, std::span<const int> rows, std::vector<float>& scales);

// Rows of x as a product with the codes of W takes them: times the channels' scales where W is
// in_major, else x as it is.
struct CodeInputs {
  const float* rows;
  int64_t stride;
};
// In memory that stays valid until this thread's next call.
CodeInputs code_inputs(const float* x, int64_t x_stride, int rows, const WeightView& w);

// What such a product summed, times the outputs' scales where W is out_major.
void scale_outputs(float* y, int64_t y_stride, int rows, const WeightView& w);

}  // namespace sol::kernels
