// Vec for AVX-512 (F, BW, DQ, VL); included by simd.h.
#pragma once

namespace sol::kernels::SOL_ISA_NAME {

struct Vec {
  __m512 v;
};
struct Mask {
  __mmask16 bits;
};

// Tile shapes that fill 32 registers: see tile.h and products.cpp.
inline constexpr int kMatvecRows = 8;
inline constexpr int kDotTileRows = 4, kDotTileOutputs = 5;
inline constexpr int kTileRows = 6, kTileVectors = 4;
inline constexpr int kCodeTileOutputs = 4;
inline constexpr int kValueVectors = 8;

inline __mmask16 first_bits(int n) {
  return static_cast<__mmask16>((1u << n) - 1u);
}

inline Vec zero() {
  return {_mm512_setzero_ps()};
}
inline Vec set(float x) {
  return {_mm512_set1_ps(x)};
}

inline Vec load(const float* p, All) {
  return {_mm512_loadu_ps(p)};
}
inline Vec load(const float* p, First f) {
  return {_mm512_maskz_loadu_ps(first_bits(f.n), p)};
}
inline Vec widen(__m256i halves) {
  return {_mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(halves), 16))};
}
inline Vec load(const bf16* p, All) {
  return widen(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
}
inline Vec load(const bf16* p, First f) {
  return widen(_mm256_maskz_loadu_epi16(first_bits(f.n), p));
}

inline void store(float* p, Vec a, All) {
  _mm512_storeu_ps(p, a.v);
}
inline void store(float* p, Vec a, First f) {
  _mm512_mask_storeu_ps(p, first_bits(f.n), a.v);
}
// Round to nearest, ties to even; a NaN stays a quiet NaN (as to_bf16 does).
inline __m256i narrow(Vec a) {
  const __m512i u = _mm512_castps_si512(a.v);
  const __m512i high = _mm512_srli_epi32(u, 16);
  const __m512i odd = _mm512_and_si512(high, _mm512_set1_epi32(1));
  const __m512i sum = _mm512_add_epi32(_mm512_add_epi32(u, _mm512_set1_epi32(0x7fff)), odd);
  const __m512i quiet = _mm512_or_si512(high, _mm512_set1_epi32(0x40));
  const __mmask16 nan = _mm512_cmp_ps_mask(a.v, a.v, _CMP_UNORD_Q);
  return _mm512_cvtepi32_epi16(_mm512_mask_mov_epi32(_mm512_srli_epi32(sum, 16), nan, quiet));
}
inline void store(bf16* p, Vec a, All) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), narrow(a));
}
inline void store(bf16* p, Vec a, First f) {
  _mm256_mask_storeu_epi16(p, first_bits(f.n), narrow(a));
}

// 16 signed codes.
inline Vec load_int8(const std::byte* p) {
  const __m128i codes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
  return {_mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(codes))};
}
// 32 weights of 4 bits: scale * values[code]. The table is multiplied, not what comes out of it.
inline void load_int4(const std::byte* p, const Vec& values, float scale, Vec& first, Vec& second) {
  const __m512 table = _mm512_mul_ps(values.v, _mm512_set1_ps(scale));
  const __m512i codes = _mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  first.v = _mm512_permutexvar_ps(codes, table);  // looks at the low four bits only
  second.v = _mm512_permutexvar_ps(_mm512_srli_epi32(codes, 4), table);
}

// 32 numbers that are not NaN, rounded as above: the upper halves of both are taken in one step.
inline __m512i round_upper_half(Vec a) {
  const __m512i u = _mm512_castps_si512(a.v);
  const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(u, 16), _mm512_set1_epi32(1));
  return _mm512_add_epi32(_mm512_add_epi32(u, _mm512_set1_epi32(0x7fff)), odd);
}
inline void store_numbers(bf16* p, Vec first, Vec second) {
  alignas(64) static constexpr uint16_t kUpperHalves[32] = {
      1,  3,  5,  7,  9,  11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31,
      33, 35, 37, 39, 41, 43, 45, 47, 49, 51, 53, 55, 57, 59, 61, 63};
  const __m512i halves = _mm512_load_si512(kUpperHalves);
  _mm512_storeu_si512(
      p, _mm512_permutex2var_epi16(round_upper_half(first), halves, round_upper_half(second)));
}

inline Vec operator+(Vec a, Vec b) {
  return {_mm512_add_ps(a.v, b.v)};
}
inline Vec operator-(Vec a, Vec b) {
  return {_mm512_sub_ps(a.v, b.v)};
}
inline Vec operator*(Vec a, Vec b) {
  return {_mm512_mul_ps(a.v, b.v)};
}
inline Vec operator/(Vec a, Vec b) {
  return {_mm512_div_ps(a.v, b.v)};
}
// a * b + c and c - a * b, rounded once.
inline Vec fma(Vec a, Vec b, Vec c) {
  return {_mm512_fmadd_ps(a.v, b.v, c.v)};
}
inline Vec negative_fma(Vec a, Vec b, Vec c) {
  return {_mm512_fnmadd_ps(a.v, b.v, c.v)};
}

// a < b ? a : b and a > b ? a : b, so the second one when either is NaN.
inline Vec min(Vec a, Vec b) {
  return {_mm512_min_ps(a.v, b.v)};
}
inline Vec max(Vec a, Vec b) {
  return {_mm512_max_ps(a.v, b.v)};
}
inline Vec abs(Vec a) {
  return {_mm512_abs_ps(a.v)};
}
// With the sign of `from`; a must not be negative.
inline Vec with_sign(Vec a, Vec from) {
  return {_mm512_or_ps(a.v, _mm512_and_ps(from.v, _mm512_set1_ps(-0.0f)))};
}
// To the nearest integer, ties to even.
inline Vec round(Vec a) {
  return {_mm512_roundscale_ps(a.v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)};
}

inline Mask less(Vec a, Vec b) {
  return {_mm512_cmp_ps_mask(a.v, b.v, _CMP_LT_OQ)};
}
inline Mask first_lanes(int n) {
  return {first_bits(n)};
}
inline Vec select(Mask m, Vec yes, Vec no) {
  return {_mm512_mask_blend_ps(m.bits, no.v, yes.v)};
}

// a * 2^n for whole n.
inline Vec times_power_of_2(Vec a, Vec n) {
  return {_mm512_scalef_ps(a.v, n.v)};
}

// The sums of four vectors, each folded as l with l+8, l+4, l+2, l+1.
inline __m128 quarter(Vec a) {
  const __m256 half = _mm256_add_ps(_mm512_castps512_ps256(a.v), _mm512_extractf32x8_ps(a.v, 1));
  return _mm_add_ps(_mm256_castps256_ps128(half), _mm256_extractf128_ps(half, 1));
}

}  // namespace sol::kernels::SOL_ISA_NAME

#include "kernels/isa/simd_reduce.h"
