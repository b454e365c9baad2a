// Vector exponential and error function.
#pragma once

#include "kernels/isa/simd.h"

namespace sol::kernels::SOL_ISA_NAME {

// e^x within 2 ulp for x in [-104, 89]: x = n ln 2 + r, a polynomial in r (Cephes expf), times 2^n.
inline Vec exp_within(Vec x) {
  const Vec n = round(x * set(1.44269504088896341f));
  Vec r = negative_fma(n, set(0.693359375f), x);
  r = negative_fma(n, set(-2.12194440e-4f), r);
  Vec p = set(1.9875691500e-4f);
  p = fma(p, r, set(1.3981999507e-3f));
  p = fma(p, r, set(8.3334519073e-3f));
  p = fma(p, r, set(4.1665795894e-2f));
  p = fma(p, r, set(1.6666665459e-1f));
  p = fma(p, r, set(5.0000001201e-1f));
  p = fma(p, r * r, r) + set(1.0f);
  return times_power_of_2(p, n);
}

// The same for every x: 0 for -infinity, infinity above 88.8, NaN for NaN; subnormal results are
// kept. Beyond the bounds the result is 0 or infinity already; max and min return x when it is NaN.
inline Vec exp(Vec x) {
  return exp_within(min(set(89.0f), max(set(-104.0f), x)));
}

// e^x for a weight in a softmax, x <= 0: 0 below -87, where the result would be subnormal. Those
// are computed a hundred times as slowly, and positions that are masked with -infinity are many.
inline Vec weight_exp(Vec x) {
  const Vec lowest = set(-87.0f);
  return select(less(x, lowest), zero(), exp_within(max(lowest, x)));
}

// erf within 1 ulp (N. Juffa's minimax polynomials): an odd polynomial near 0, 1 - e^p further out.
inline Vec erf(Vec x) {
  const Vec t = abs(x), s = x * x;
  Vec far = fma(set(-1.72853470e-5f), t, set(3.83197126e-4f));
  const Vec u = fma(set(-3.88396438e-3f), t, set(2.42546219e-2f));
  far = fma(far, s, u);
  far = fma(far, t, set(-1.06777877e-1f));
  far = fma(far, t, set(-6.34846687e-1f));
  far = fma(far, t, set(-1.28717512e-1f));
  far = fma(far, t, zero() - t);
  far = with_sign(set(1.0f) - exp(far), x);

  Vec near = set(-5.96761703e-4f);
  near = fma(near, s, set(4.99119423e-3f));
  near = fma(near, s, set(-2.67681349e-2f));
  near = fma(near, s, set(1.12819925e-1f));
  near = fma(near, s, set(-3.76125336e-1f));
  near = fma(near, s, set(1.28379166e-1f));
  near = fma(near, x, x);
  // The outer polynomial turns over for very large x, where erf is 1 to the last bit since 4
  // already.
  far = select(less(set(4.0f), t), with_sign(set(1.0f), x), far);
  return select(less(set(0.927734375f), t), far, near);
}

}  // namespace sol::kernels::SOL_ISA_NAME
