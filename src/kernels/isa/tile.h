// The register tile of all products that walk rows of the second operand:
//   c[r][0..v·16) = start + Σ_k a[r][k] · b[k][0..v·16), a chain of fused multiply-adds in order of
//   k.
#pragma once

#include "kernels/isa/simd.h"

namespace sol::kernels::SOL_ISA_NAME {

// R rows of a with V vectors of columns. `b` has at least V·16 columns to read. Accumulators come
// in and go out through `sum`.
template <int R, int V>
inline void tile(const float* const (&a)[R], int depth, const float* b, int64_t b_stride,
                 Vec (&sum)[R][V]) {
  for (int k = 0; k < depth; ++k, b += b_stride) {
    Vec column[V];
    for (int v = 0; v < V; ++v) column[v] = load(b + v * kWidth);
    for (int r = 0; r < R; ++r) {
      const Vec x = set(a[r][k]);
      for (int v = 0; v < V; ++v) sum[r][v] = fma(x, column[v], sum[r][v]);
    }
  }
}

// Calls body.operator()<R>(first row) for [0, rows): whole groups of kTileRows, then one smaller
// group.
template <typename Body>
inline void for_row_groups(int rows, const Body& body) {
  static_assert(kTileRows == 6);
  int r = 0;
  for (; r + 6 <= rows; r += 6) body.template operator()<6>(r);
  switch (rows - r) {
    case 1:
      body.template operator()<1>(r);
      break;
    case 2:
      body.template operator()<2>(r);
      break;
    case 3:
      body.template operator()<3>(r);
      break;
    case 4:
      body.template operator()<4>(r);
      break;
    case 5:
      body.template operator()<5>(r);
      break;
    default:
      break;
  }
}

}  // namespace sol::kernels::SOL_ISA_NAME
