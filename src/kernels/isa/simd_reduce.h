// Four horizontal sums at once; included by simd_*.h, which define quarter(): the first two folds.
#pragma once

namespace sol::kernels::SOL_ISA_NAME {

inline void reduce_add4(Vec a, Vec b, Vec c, Vec d, float* sums) {
  __m128 w = quarter(a), x = quarter(b), y = quarter(c), z = quarter(d);
  _MM_TRANSPOSE4_PS(w, x, y, z);
  _mm_storeu_ps(sums, _mm_add_ps(_mm_add_ps(w, y), _mm_add_ps(x, z)));
}

}  // namespace sol::kernels::SOL_ISA_NAME
