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

// One block of n numbers as whole ones, of which whole vectors are written, zeros at the end;
// returns what they are multiplied by.
inline float to_fixed_point(const float* x, int n, int16_t* numbers) {
  Range range;
  for_vectors(n, [&](int i, auto part) { range.include(load(x + i, part)); });
  const FixedPoint fixed = range.together();
  for_vectors(n, [&](int i, auto part) {
    store_wide(numbers + i, round(load(x + i, part) * fixed.inverse));
  });
  float scale[kWidth];
  store(scale, fixed.scale);
  return scale[0];
}

}  // namespace sol::kernels::SOL_ISA_NAME
