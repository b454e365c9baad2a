// The input channels that a product with an in_major matrix sums over.
#pragma once

#include "kernels/isa/simd.h"

namespace sol::kernels::SOL_ISA_NAME {

struct Channels {
  const WeightView& w;
  const int* listed;  // in the order in which they are added; nullptr: all
  int n;
  int at(int k) const { return listed ? listed[k] : k; }
};

}  // namespace sol::kernels::SOL_ISA_NAME
