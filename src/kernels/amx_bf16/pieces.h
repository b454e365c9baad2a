// float32 numbers as sums of three bf16 numbers, so that tiles multiply them without rounding: the
// 24 bits of one are 8 of each. Few rows leave most of a tile unused; the pieces fill it.
#pragma once

#include "kernels/amx_bf16/tiles.h"
#include "kernels/isa/simd.h"

namespace sol::kernels::amx_bf16 {

inline constexpr int kPieces = 3;
inline constexpr int kRowsOfPieces = 4;  // rows in one operand: kPieces * 4 of its 16

// high + middle + low = x, each with x's sign and the lower half of its bits zero. What is below
// 2^-126 of them tiles count as zero. Of infinity and NaN the high one is x, the others are 0.
struct Pieces {
  Vec high, middle, low;
};

inline Vec upper_half(Vec x) {
  const __m512i mask = _mm512_set1_epi32(static_cast<int>(0xffff0000u));
  return {_mm512_castsi512_ps(_mm512_and_si512(_mm512_castps_si512(x.v), mask))};
}

// Of x that is not infinite.
inline Pieces pieces_of_finite(Vec x) {
  const Vec high = upper_half(x), rest = x - high, middle = upper_half(rest);
  return {high, middle, rest - middle};
}

inline Pieces pieces_of(Vec x) {
  constexpr int kNan = 0x81, kInfinite = 0x18;
  const Pieces p = pieces_of_finite(x);
  const __mmask16 nan = _mm512_fpclass_ps_mask(x.v, kNan),
                  finite = _knot_mask16(_mm512_fpclass_ps_mask(x.v, kNan | kInfinite));
  return {select({nan}, set(__builtin_nanf("")), p.high),
          {_mm512_maskz_mov_ps(finite, p.middle.v)},
          {_mm512_maskz_mov_ps(finite, p.low.v)}};
}

// 32 numbers of bf16 from twice 16 pieces.
inline __m512i packed(Vec first, Vec second) {
  return upper_halves(_mm512_castps_si512(first.v), _mm512_castps_si512(second.v));
}

// Within each quarter of four registers, their four words as a 4 x 4 matrix, transposed.
inline void transpose_words(__m512i (&x)[4]) {
  const __m512i a = _mm512_unpacklo_epi32(x[0], x[1]), b = _mm512_unpacklo_epi32(x[2], x[3]);
  const __m512i c = _mm512_unpackhi_epi32(x[0], x[1]), d = _mm512_unpackhi_epi32(x[2], x[3]);
  x[0] = _mm512_unpacklo_epi64(a, b);
  x[1] = _mm512_unpackhi_epi64(a, b);
  x[2] = _mm512_unpacklo_epi64(c, d);
  x[3] = _mm512_unpackhi_epi64(c, d);
}

}  // namespace sol::kernels::amx_bf16
