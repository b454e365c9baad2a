// Vec for AVX2 with FMA: two registers; included by simd.h.
#pragma once

namespace sol::kernels::SOL_ISA_NAME {

struct Vec {
  __m256 lo, hi;
};
struct Mask {
  __m256 lo, hi;
};
struct Keys {
  __m256i lo, hi;
};

// Tile shapes that fill 16 registers: see tile.h and products.cpp.
inline constexpr int kMatvecRows = 4;
inline constexpr int kDotTileRows = 2, kDotTileOutputs = 3;
inline constexpr int kTileRows = 6, kTileVectors = 1;
inline constexpr int kCodeTileOutputs = 1;
// Attention (attend.cpp): rows that share a load of four keys, and rows and vectors of the weighted
// sum of values.
inline constexpr int kScoreRows = 1;
inline constexpr int kMixRows = 2, kMixVectors = 2;
inline constexpr int kFurtherRowCost =
    60;  // percent of the first row's, in a group that shares loads

struct FirstMasks {
  __m256i lo, hi;
};
inline FirstMasks first_masks(int n) {
  alignas(32) static constexpr int kMasks[32] = {-1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1,
                                                 -1, -1, -1, -1, -1, 0,  0,  0,  0,  0,  0,
                                                 0,  0,  0,  0,  0,  0,  0,  0,  0,  0};
  const int* at = kMasks + 16 - n;
  return {_mm256_loadu_si256(reinterpret_cast<const __m256i*>(at)),
          _mm256_loadu_si256(reinterpret_cast<const __m256i*>(at + 8))};
}

inline Vec zero() {
  return {_mm256_setzero_ps(), _mm256_setzero_ps()};
}
inline Vec set(float x) {
  return {_mm256_set1_ps(x), _mm256_set1_ps(x)};
}

inline Vec load(const float* p, All) {
  return {_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)};
}
inline Vec load(const float* p, First f) {
  const FirstMasks m = first_masks(f.n);
  return {_mm256_maskload_ps(p, m.lo), _mm256_maskload_ps(p + 8, m.hi)};
}
inline __m256 widen(__m128i halves) {
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(halves), 16));
}
inline Vec load(const bf16* p, All) {
  return {widen(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))),
          widen(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p + 8)))};
}
inline Vec load(const bf16* p, First f) {
  bf16 whole[kWidth] = {};  // AVX2 has no masked loads of 16 bits
  for (int i = 0; i < f.n; ++i) whole[i].bits = p[i].bits;
  return load(whole, All{});
}

inline void store(float* p, Vec a, All) {
  _mm256_storeu_ps(p, a.lo);
  _mm256_storeu_ps(p + 8, a.hi);
}
inline void store(float* p, Vec a, First f) {
  const FirstMasks m = first_masks(f.n);
  _mm256_maskstore_ps(p, m.lo, a.lo);
  _mm256_maskstore_ps(p + 8, m.hi, a.hi);
}
// Round to nearest, ties to even; a NaN stays a quiet NaN (as to_bf16 does).
inline __m256i narrow(__m256 a) {
  const __m256i u = _mm256_castps_si256(a);
  const __m256i high = _mm256_srli_epi32(u, 16);
  const __m256i odd = _mm256_and_si256(high, _mm256_set1_epi32(1));
  const __m256i sum = _mm256_add_epi32(_mm256_add_epi32(u, _mm256_set1_epi32(0x7fff)), odd);
  const __m256i quiet = _mm256_or_si256(high, _mm256_set1_epi32(0x40));
  const __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(a, a, _CMP_UNORD_Q));
  return _mm256_blendv_epi8(_mm256_srli_epi32(sum, 16), quiet, nan);
}
inline void store(bf16* p, Vec a, All) {
  const __m256i packed = _mm256_packus_epi32(narrow(a.lo), narrow(a.hi));  // per 128 bits
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm256_permute4x64_epi64(packed, 0xd8));
}
inline void store(bf16* p, Vec a, First f) {
  bf16 whole[kWidth];
  store(whole, a, All{});
  for (int i = 0; i < f.n; ++i) p[i].bits = whole[i].bits;
}

// 32 numbers that are not NaN, rounded as above.
inline void store_numbers(bf16* p, Vec first, Vec second) {
  store(p, first, All{});
  store(p + kWidth, second, All{});
}

// The same of numbers that bf16 holds exactly.
inline void store_exact(bf16* p, Vec first, Vec second) {
  const auto upper = [](__m256 a) { return _mm256_srli_epi32(_mm256_castps_si256(a), 16); };
  const Vec both[2] = {first, second};
  for (int i = 0; i < 2; ++i) {
    const __m256i packed = _mm256_packus_epi32(upper(both[i].lo), upper(both[i].hi));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p + i * kWidth),
                        _mm256_permute4x64_epi64(packed, 0xd8));
  }
}

// 16 signed codes.
inline Vec widen_codes(__m128i codes) {
  return {_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(codes)),
          _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_srli_si128(codes, 8)))};
}
inline Vec load_int8(const std::byte* p) {
  return widen_codes(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
}
inline Vec operator*(Vec a, Vec b);
// 32 weights of 4 bits: scale * kInt4Values[code].
inline void load_int4(const std::byte* p, const Vec&, float scale, Vec& first, Vec& second) {
  const __m128i codes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
  const __m128i table = _mm_load_si128(reinterpret_cast<const __m128i*>(kInt4Values));
  const __m128i nibble = _mm_set1_epi8(0x0f);
  first = widen_codes(_mm_shuffle_epi8(table, _mm_and_si128(codes, nibble))) * set(scale);
  second = widen_codes(_mm_shuffle_epi8(table, _mm_and_si128(_mm_srli_epi16(codes, 4), nibble))) *
           set(scale);
}

// Whole numbers of a byte's range as codes.
inline void store_codes(int8_t* p, Vec a, All) {
  const __m256i lo = _mm256_cvtps_epi32(a.lo), hi = _mm256_cvtps_epi32(a.hi);
  const __m256i halves = _mm256_permute4x64_epi64(_mm256_packs_epi32(lo, hi), 0xd8);
  _mm_storeu_si128(
      reinterpret_cast<__m128i*>(p),
      _mm_packs_epi16(_mm256_castsi256_si128(halves), _mm256_extracti128_si256(halves, 1)));
}
inline void store_codes(int8_t* p, Vec a, First f) {
  int8_t whole[kWidth];
  store_codes(whole, a, All{});
  for (int i = 0; i < f.n; ++i) p[i] = whole[i];
}

inline Vec operator+(Vec a, Vec b) {
  return {_mm256_add_ps(a.lo, b.lo), _mm256_add_ps(a.hi, b.hi)};
}
inline Vec operator-(Vec a, Vec b) {
  return {_mm256_sub_ps(a.lo, b.lo), _mm256_sub_ps(a.hi, b.hi)};
}
inline Vec operator*(Vec a, Vec b) {
  return {_mm256_mul_ps(a.lo, b.lo), _mm256_mul_ps(a.hi, b.hi)};
}
inline Vec operator/(Vec a, Vec b) {
  return {_mm256_div_ps(a.lo, b.lo), _mm256_div_ps(a.hi, b.hi)};
}
// a * b + c and c - a * b, rounded once.
inline Vec fma(Vec a, Vec b, Vec c) {
  return {_mm256_fmadd_ps(a.lo, b.lo, c.lo), _mm256_fmadd_ps(a.hi, b.hi, c.hi)};
}
inline Vec negative_fma(Vec a, Vec b, Vec c) {
  return {_mm256_fnmadd_ps(a.lo, b.lo, c.lo), _mm256_fnmadd_ps(a.hi, b.hi, c.hi)};
}

// a < b ? a : b and a > b ? a : b, so the second one when either is NaN.
inline Vec min(Vec a, Vec b) {
  return {_mm256_min_ps(a.lo, b.lo), _mm256_min_ps(a.hi, b.hi)};
}
inline Vec max(Vec a, Vec b) {
  return {_mm256_max_ps(a.lo, b.lo), _mm256_max_ps(a.hi, b.hi)};
}
inline Vec abs(Vec a) {
  const __m256 sign = _mm256_set1_ps(-0.0f);
  return {_mm256_andnot_ps(sign, a.lo), _mm256_andnot_ps(sign, a.hi)};
}
// The larger of |a| and |b|; |a| where b is NaN, NaN where a alone is.
inline Vec largest_magnitude(Vec a, Vec b) {
  return max(abs(b), abs(a));
}
// With the sign of `from`; a must not be negative.
inline Vec with_sign(Vec a, Vec from) {
  const __m256 sign = _mm256_set1_ps(-0.0f);
  return {_mm256_or_ps(a.lo, _mm256_and_ps(from.lo, sign)),
          _mm256_or_ps(a.hi, _mm256_and_ps(from.hi, sign))};
}
// To the nearest integer, ties to even.
inline Vec round(Vec a) {
  return {_mm256_round_ps(a.lo, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC),
          _mm256_round_ps(a.hi, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)};
}

inline Mask less(Vec a, Vec b) {
  return {_mm256_cmp_ps(a.lo, b.lo, _CMP_LT_OQ), _mm256_cmp_ps(a.hi, b.hi, _CMP_LT_OQ)};
}
inline Mask first_lanes(int n) {
  const FirstMasks m = first_masks(n);
  return {_mm256_castsi256_ps(m.lo), _mm256_castsi256_ps(m.hi)};
}
// Lane i where bit i is set.
inline Mask lanes_of(uint32_t bits) {
  const __m256i all = _mm256_set1_epi32(static_cast<int>(bits));
  const __m256i lo = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128), hi = _mm256_slli_epi32(lo, 8);
  return {_mm256_castsi256_ps(_mm256_cmpeq_epi32(_mm256_and_si256(all, lo), lo)),
          _mm256_castsi256_ps(_mm256_cmpeq_epi32(_mm256_and_si256(all, hi), hi))};
}
inline Vec select(Mask m, Vec yes, Vec no) {
  return {_mm256_blendv_ps(no.lo, yes.lo, m.lo), _mm256_blendv_ps(no.hi, yes.hi, m.hi)};
}

// a * 2^n for whole n in [-252, 254]: in two factors, since one alone may not be a normal number.
inline __m256 times_power_of_2(__m256 a, __m256 n) {
  const __m256i whole = _mm256_cvtps_epi32(n);
  const __m256i half = _mm256_srai_epi32(whole, 1);
  const __m256i bias = _mm256_set1_epi32(127);
  const __m256i one = _mm256_slli_epi32(_mm256_add_epi32(half, bias), 23);
  const __m256i other =
      _mm256_slli_epi32(_mm256_add_epi32(_mm256_sub_epi32(whole, half), bias), 23);
  return _mm256_mul_ps(_mm256_mul_ps(a, _mm256_castsi256_ps(one)), _mm256_castsi256_ps(other));
}
inline Vec times_power_of_2(Vec a, Vec n) {
  return {times_power_of_2(a.lo, n.lo), times_power_of_2(a.hi, n.hi)};
}

// The first two folds of a sum, l with l+8 and l+4.
inline __m128 quarter(Vec a) {
  const __m256 half = _mm256_add_ps(a.lo, a.hi);
  return _mm_add_ps(_mm256_castps256_ps128(half), _mm256_extractf128_ps(half, 1));
}

// The sums of four vectors, each folded as l with l+8, l+4, l+2, l+1.
inline void reduce_add4(Vec a, Vec b, Vec c, Vec d, float* sums) {
  __m128 w = quarter(a), x = quarter(b), y = quarter(c), z = quarter(d);
  _MM_TRANSPOSE4_PS(w, x, y, z);
  _mm_storeu_ps(sums, _mm_add_ps(_mm_add_ps(w, y), _mm_add_ps(x, z)));
}

// The same of R times four vectors, four sums to each place.
template <int R>
inline void reduce_add4(const Vec (&v)[R][4], float* const (&sums)[R]) {
  for (int r = 0; r < R; ++r) reduce_add4(v[r][0], v[r][1], v[r][2], v[r][3], sums[r]);
}

// Bit i: p[i] has a bit of `wanted`, for eight of them.
inline uint32_t test_eight(const uint64_t* p, uint64_t wanted) {
  const __m256i all = _mm256_set1_epi64x(static_cast<int64_t>(wanted));
  const auto none = [&](const uint64_t* at) {
    const __m256i x = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(at));
    const __m256i empty = _mm256_cmpeq_epi64(_mm256_and_si256(x, all), _mm256_setzero_si256());
    return static_cast<uint32_t>(_mm256_movemask_pd(_mm256_castsi256_pd(empty)));
  };
  return ~(none(p) | none(p + 4) << 4) & 0xffu;
}

// --- integers that order as floats do (largest.cpp), 16 at a time ---

inline void store(int32_t* p, Keys a) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), a.lo);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p + 8), a.hi);
}
inline Keys load_keys(const int32_t* p) {
  return {_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)),
          _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p + 8))};
}
// |x|, NaN above infinity.
inline Keys magnitude_keys(Vec x) {
  const Vec a = abs(x);
  return {_mm256_castps_si256(a.lo), _mm256_castps_si256(a.hi)};
}
// x, -0 equal to +0, NaN lowest.
inline __m256i value_keys(__m256 x) {
  const __m256i u = _mm256_castps_si256(_mm256_add_ps(x, _mm256_setzero_ps()));
  const __m256i flip = _mm256_srli_epi32(_mm256_srai_epi32(u, 31), 1);
  const __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(x, x, _CMP_UNORD_Q));
  return _mm256_blendv_epi8(_mm256_xor_si256(u, flip), _mm256_set1_epi32(-0x7fffffff - 1), nan);
}
inline Keys value_keys(Vec x) {
  return {value_keys(x.lo), value_keys(x.hi)};
}
inline Keys min(Keys a, Keys b) {
  return {_mm256_min_epi32(a.lo, b.lo), _mm256_min_epi32(a.hi, b.hi)};
}
inline Keys max(Keys a, Keys b) {
  return {_mm256_max_epi32(a.lo, b.lo), _mm256_max_epi32(a.hi, b.hi)};
}
// Bit i: element i is greater than t.
inline uint32_t greater(Keys a, int32_t t) {
  const __m256i limit = _mm256_set1_epi32(t);
  const auto bits = [&](__m256i x) {
    return static_cast<uint32_t>(
        _mm256_movemask_ps(_mm256_castsi256_ps(_mm256_cmpgt_epi32(x, limit))));
  };
  return bits(a.lo) | bits(a.hi) << 8;
}
// The elements whose bit is set, moved together to p; may write 16 elements.
inline void compress(int32_t* p, Keys a, uint32_t bits) {
  int32_t all[16];
  store(all, a);
  for (; bits; bits &= bits - 1) *p++ = all[__builtin_ctz(bits)];
}

// --- exact sums of products of codes (integer_products.cpp) ---

// 32 codes, widened.
struct WideCodes {
  __m256i lo, hi;
};
inline WideCodes load_codes(const void* p) {
  const __m128i* at = static_cast<const __m128i*>(p);
  return {_mm256_cvtepi8_epi16(_mm_loadu_si128(at)), _mm256_cvtepi8_epi16(_mm_loadu_si128(at + 1))};
}
// Parts of one sum.
struct DotSum {
  __m256i lo = _mm256_setzero_si256(), hi = _mm256_setzero_si256();
};
inline void add_products(DotSum& sum, WideCodes a, WideCodes b) {
  sum.lo = _mm256_add_epi32(sum.lo, _mm256_madd_epi16(a.lo, b.lo));
  sum.hi = _mm256_add_epi32(sum.hi, _mm256_madd_epi16(a.hi, b.hi));
}
inline int32_t total(DotSum sum) {
  const __m256i both = _mm256_add_epi32(sum.lo, sum.hi);
  __m128i s = _mm_add_epi32(_mm256_castsi256_si128(both), _mm256_extracti128_si256(both, 1));
  s = _mm_add_epi32(s, _mm_shuffle_epi32(s, 0x4e));
  return _mm_cvtsi128_si32(_mm_add_epi32(s, _mm_shuffle_epi32(s, 0xb1)));
}

inline Vec as_floats(DotSum sum) {
  return {_mm256_cvtepi32_ps(sum.lo), _mm256_cvtepi32_ps(sum.hi)};
}
inline WideCodes load_wide(const int16_t* p) {
  const __m256i* at = reinterpret_cast<const __m256i*>(p);
  return {_mm256_loadu_si256(at), _mm256_loadu_si256(at + 1)};
}
// To the nearest whole number, ties to even.
struct Whole {
  __m256i lo, hi;
};
inline Whole no_whole() {
  return {_mm256_setzero_si256(), _mm256_setzero_si256()};
}
inline Whole to_whole(Vec a) {
  return {_mm256_cvtps_epi32(a.lo), _mm256_cvtps_epi32(a.hi)};
}
inline Whole operator+(Whole a, Whole b) {
  return {_mm256_add_epi32(a.lo, b.lo), _mm256_add_epi32(a.hi, b.hi)};
}
inline void store(int32_t* p, Whole a) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), a.lo);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p + 8), a.hi);
}
// Numbers of 16 bits: 16 in a row, or one of each as a pair, the first in the lower half.
inline void store_wide(int16_t* p, Vec a) {
  const __m256i both = _mm256_packs_epi32(_mm256_cvtps_epi32(a.lo), _mm256_cvtps_epi32(a.hi));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm256_permute4x64_epi64(both, 0xd8));
}
inline Whole pairs_of(Whole a, Whole b) {
  return {_mm256_blend_epi16(a.lo, _mm256_slli_epi32(b.lo, 16), 0xaa),
          _mm256_blend_epi16(a.hi, _mm256_slli_epi32(b.hi, 16), 0xaa)};
}

// Four groups of 4-bit codes, half of a register each; fewer where the rest are not in memory.
struct Nibbles {
  __m256i lo, hi;
};
inline Nibbles load_nibbles(const std::byte* p, All) {
  const __m256i* at = reinterpret_cast<const __m256i*>(p);
  return {_mm256_loadu_si256(at), _mm256_loadu_si256(at + 1)};
}
inline Nibbles load_nibbles(const std::byte* p, First groups) {
  const FirstMasks m = first_masks(4 * groups.n);
  const int* at = reinterpret_cast<const int*>(p);
  return {_mm256_maskload_epi32(at, m.lo), _mm256_maskload_epi32(at + 8, m.hi)};
}
// Two bytes of a, two of b, and so on, of the first or of the second half of each group.
inline Nibbles pair_first(const Nibbles& a, const Nibbles& b) {
  return {_mm256_unpacklo_epi16(a.lo, b.lo), _mm256_unpacklo_epi16(a.hi, b.hi)};
}
inline Nibbles pair_second(const Nibbles& a, const Nibbles& b) {
  return {_mm256_unpackhi_epi16(a.lo, b.lo), _mm256_unpackhi_epi16(a.hi, b.hi)};
}
// What the codes in bits 4 * N.. of every two bytes stand for.
template <int N>
inline __m256i nibble_values(__m256i codes) {
  const __m256i table =
      _mm256_broadcastsi128_si256(_mm_load_si128(reinterpret_cast<const __m128i*>(kInt4Values)));
  // The code to the upper byte, its value too, from where shifting brings its sign.
  const __m256i upper =
      N == 3 ? _mm256_srli_epi16(codes, 4) : _mm256_slli_epi16(codes, N == 2 ? 0 : 8 - 4 * N);
  const __m256i value =
      _mm256_shuffle_epi8(table, _mm256_and_si256(upper, _mm256_set1_epi16(0x0f00)));
  return _mm256_srai_epi16(value, 8);
}
template <int N>
inline WideCodes nibble_values(const Nibbles& codes) {
  return {nibble_values<N>(codes.lo), nibble_values<N>(codes.hi)};
}
// Four numbers, each to a quarter of the lanes.
inline WideCodes spread(const int32_t* p) {
  const __m256i two = _mm256_set_epi32(1, 1, 1, 1, 0, 0, 0, 0);
  const __m256i four =
      _mm256_broadcastsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  return {_mm256_permutevar8x32_epi32(four, two),
          _mm256_permutevar8x32_epi32(four, _mm256_or_si256(two, _mm256_set1_epi32(2)))};
}
inline Vec spread(const float* p) {
  return {_mm256_set_m128(_mm_set1_ps(p[1]), _mm_set1_ps(p[0])),
          _mm256_set_m128(_mm_set1_ps(p[3]), _mm_set1_ps(p[2]))};
}
inline Vec spread(const bf16* p, All) {
  float numbers[kWidth];
  store(numbers, load(p, First{4}), All{});
  return spread(numbers);
}

// 32 codes of each of two rows, column by column, eight columns a register.
struct CodePairs {
  __m256i v[4];
};
inline CodePairs load_pairs(const std::byte* a, const std::byte* b) {
  CodePairs pairs;
  for (int half = 0; half < 2; ++half) {
    const __m128i x = _mm_loadu_si128(reinterpret_cast<const __m128i*>(a) + half);
    const __m128i y = _mm_loadu_si128(reinterpret_cast<const __m128i*>(b) + half);
    pairs.v[2 * half] = _mm256_cvtepi8_epi16(_mm_unpacklo_epi8(x, y));
    pairs.v[2 * half + 1] = _mm256_cvtepi8_epi16(_mm_unpackhi_epi8(x, y));
  }
  return pairs;
}
// Sums of 32 columns.
struct ColumnSums {
  __m256i v[4];
};
inline ColumnSums no_columns() {
  const __m256i zeros = _mm256_setzero_si256();
  return {{zeros, zeros, zeros, zeros}};
}
inline ColumnSums load_columns(const int32_t* p) {
  const __m256i* at = reinterpret_cast<const __m256i*>(p);
  return {{_mm256_loadu_si256(at), _mm256_loadu_si256(at + 1), _mm256_loadu_si256(at + 2),
           _mm256_loadu_si256(at + 3)}};
}
inline void store_columns(int32_t* p, const ColumnSums& s) {
  for (int i = 0; i < 4; ++i) _mm256_storeu_si256(reinterpret_cast<__m256i*>(p) + i, s.v[i]);
}
// `factors`: the first row's in the lower half.
inline void add_products(ColumnSums& s, const CodePairs& pairs, int32_t factors) {
  const __m256i f = _mm256_set1_epi32(factors);
  for (int i = 0; i < 4; ++i) s.v[i] = _mm256_add_epi32(s.v[i], _mm256_madd_epi16(pairs.v[i], f));
}
inline void columns_as_floats(const ColumnSums& s, Vec& first, Vec& second) {
  first = {_mm256_cvtepi32_ps(s.v[0]), _mm256_cvtepi32_ps(s.v[1])};
  second = {_mm256_cvtepi32_ps(s.v[2]), _mm256_cvtepi32_ps(s.v[3])};
}

}  // namespace sol::kernels::SOL_ISA_NAME
