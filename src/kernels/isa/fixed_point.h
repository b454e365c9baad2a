// Inputs of products with codes: 16-bit whole numbers that share a scale in each block, so that
// products are whole numbers too (kernels.h, "Products").
#pragma once

#include "kernels/compressed.h"
#include "kernels/isa/simd.h"

namespace sol::kernels::SOL_ISA_NAME {

// What numbers whose largest magnitude is `largest` are multiplied by to become whole numbers, and
// what those are then multiplied by.
struct FixedPoint {
  Vec inverse, scale;
};

// The largest magnitude of each lane's numbers, and whether one of them is not finite.
class Range {
 public:
  void include(Vec v) {
    largest_ = largest_magnitude(largest_, v);
    check_ = fma(v, zero(), check_);  // NaN where v is not finite
  }
  FixedPoint by_lane() const { return fixed_point(largest_, check_); }
  // One for all lanes.
  FixedPoint together() const {
    return fixed_point(set(reduce_max(largest_)), set(reduce_add(check_)));
  }

 private:
  static FixedPoint fixed_point(Vec largest, Vec check) {
    const Vec most = set(static_cast<float>(kLargestFixed));
    const Mask nothing = less(largest, set(kSmallestFixed));
    // check is zero or NaN
    return {select(nothing, zero(), most / largest),
            select(nothing, zero(), largest / most) + check};
  }
  Vec largest_ = zero(), check_ = zero();
};

}  // namespace sol::kernels::SOL_ISA_NAME
