// Rows of matrices, and the input channels that a product with an in_major matrix sums over.
#pragma once

#include "kernels/isa/simd.h"

namespace sol::kernels::SOL_ISA_NAME {

// A row of a matrix of Ts, which its stride counts; of the codes of an int8 matrix too.
template <typename T>
const T* row_of(const WeightView& w, int64_t row) {
  return static_cast<const T*>(w.data) + row * w.stride;
}

struct Channels {
  const WeightView& w;
  const int* listed;  // in the order in which they are added; nullptr: all
  int n;
  int at(int k) const { return listed ? listed[k] : k; }
};

}  // namespace sol::kernels::SOL_ISA_NAME
