// AVX512-BF16's instruction, which multiplies pairs of numbers, and what is made of it.
#pragma once

#include "kernels/isa/simd.h"

namespace sol::kernels::avx512_bf16 {

inline constexpr int kPairedInputs = 2 * kWidth;  // of one instruction

// body(0), ..., body(N - 1), each a copy of its own, so that arrays of sums that they index stay in
// registers: of loops that the compiler unrolls late it keeps them in memory before and after.
template <int N, typename Body>
[[gnu::always_inline]] inline void repeat(const Body& body) {
  if constexpr (N > 1) repeat<N - 1>(body);
  body(N - 1);
}

// sum + inputs · weights, pair by pair.
inline Vec add_pairs(Vec sum, __m512i inputs, __m512i weights) {
  return {_mm512_dpbf16_ps(sum.v, (__m512bh)inputs, (__m512bh)weights)};
}
// One pair of inputs, for all outputs.
inline __m512i set_pair(const bf16* x) {
  int32_t pair;
  __builtin_memcpy(&pair, x, sizeof(pair));
  return _mm512_set1_epi32(pair);
}

// 32 numbers to the nearest bf16, ties to even; subnormal ones to zero.
inline __m512i rounded(Vec first, Vec second) {
  return (__m512i)_mm512_cvtne2ps_pbh(second.v, first.v);
}

// Dot products of R rows with four others, all of `width` numbers, a multiple of kPairedInputs. The
// rows' numbers are sums of P pieces, `width` apart.
template <int P, int R>
inline void dot_four(const bf16* const (&x)[R], const bf16* const (&y)[4], int width,
                     float* const (&sums)[R]) {
  Vec sum[R][4];
  repeat<R>([&](int r) { repeat<4>([&](int t) { sum[r][t] = zero(); }); });
  for (int d = 0; d < width; d += kPairedInputs) {
    __m512i of_y[4];
    repeat<4>([&](int t) { of_y[t] = _mm512_loadu_si512(y[t] + d); });
    repeat<P>([&](int p) {
      repeat<R>([&](int r) {
        const __m512i of_x = _mm512_loadu_si512(x[r] + p * width + d);
        repeat<4>([&](int t) { sum[r][t] = add_pairs(sum[r][t], of_x, of_y[t]); });
      });
    });
  }
  reduce_add4(sum, sums);
}

}  // namespace sol::kernels::avx512_bf16
