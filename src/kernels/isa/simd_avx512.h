// Vec for AVX-512 (F, BW, DQ, VL); included by simd.h.
#pragma once

namespace sol::kernels::SOL_ISA_NAME {

struct Vec {
  __m512 v;
};
struct Mask {
  __mmask16 bits;
};
struct Keys {
  __m512i v;
};

// Tile shapes that fill 32 registers: see tile.h and products.cpp.
inline constexpr int kMatvecRows = 8;
inline constexpr int kDotTileRows = 4, kDotTileOutputs = 5;
inline constexpr int kTileRows = 6, kTileVectors = 4;
inline constexpr int kCodeTileOutputs = 4;
// Attention (attend.cpp): rows that share a load of four keys, and rows and vectors of the weighted
// sum of values.
inline constexpr int kScoreRows = 4;
inline constexpr int kMixRows = 4, kMixVectors = 4;
inline constexpr int kFurtherRowCost =
    25;  // percent of the first row's, in a group that shares loads

inline __mmask16 first_bits(int n) {
  return static_cast<__mmask16>((1u << n) - 1u);
}

inline __mmask32 first_of_32(int n) {
  return n >= 32 ? ~__mmask32{0} : (__mmask32{1} << n) - 1;
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
inline __m512i upper_halves(__m512i first, __m512i second) {
  alignas(64) static constexpr uint16_t kUpperHalves[32] = {
      1,  3,  5,  7,  9,  11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31,
      33, 35, 37, 39, 41, 43, 45, 47, 49, 51, 53, 55, 57, 59, 61, 63};
  return _mm512_permutex2var_epi16(first, _mm512_load_si512(kUpperHalves), second);
}
inline void store_numbers(bf16* p, Vec first, Vec second) {
  _mm512_storeu_si512(p, upper_halves(round_upper_half(first), round_upper_half(second)));
}
// The same of numbers that bf16 holds exactly.
inline void store_exact(bf16* p, Vec first, Vec second) {
  _mm512_storeu_si512(p, upper_halves(_mm512_castps_si512(first.v), _mm512_castps_si512(second.v)));
}

struct TwoVecs {
  Vec first, second;
};
// 32 columns in their order, from even groups of four of them and odd ones: as two rows of 16-bit
// numbers come apart when their columns are interleaved.
inline TwoVecs columns_in_order(Vec even, Vec odd) {
  const __m512i first = _mm512_setr_epi64(0, 1, 8, 9, 2, 3, 10, 11);
  const __m512i second = _mm512_setr_epi64(4, 5, 12, 13, 6, 7, 14, 15);
  const __m512d a = _mm512_castps_pd(even.v), b = _mm512_castps_pd(odd.v);
  return {{_mm512_castpd_ps(_mm512_permutex2var_pd(a, first, b))},
          {_mm512_castpd_ps(_mm512_permutex2var_pd(a, second, b))}};
}

// Whole numbers of a byte's range as codes.
inline __m128i codes_of(Vec a) {
  return _mm512_cvtepi32_epi8(_mm512_cvtps_epi32(a.v));
}
inline void store_codes(int8_t* p, Vec a, All) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), codes_of(a));
}
inline void store_codes(int8_t* p, Vec a, First f) {
  _mm_mask_storeu_epi8(p, first_bits(f.n), codes_of(a));
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
// The larger of |a| and |b|; of a NaN and a number the number.
inline Vec largest_magnitude(Vec a, Vec b) {
  constexpr int kMaximum = 1 | 2, kPositive = 2 << 2;
  return {_mm512_range_ps(a.v, b.v, kMaximum | kPositive)};
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
// Lane i where bit i is set.
inline Mask lanes_of(uint32_t bits) {
  return {static_cast<__mmask16>(bits)};
}
inline Vec select(Mask m, Vec yes, Vec no) {
  return {_mm512_mask_blend_ps(m.bits, no.v, yes.v)};
}

// a * 2^n for whole n.
inline Vec times_power_of_2(Vec a, Vec n) {
  return {_mm512_scalef_ps(a.v, n.v)};
}

// The first two folds (l with l+8, l+4) of four vectors: one 128-bit lane each.
inline __m512 fold_lanes(Vec a, Vec b, Vec c, Vec d) {
  const __m512 ab =
      _mm512_add_ps(_mm512_shuffle_f32x4(a.v, b.v, 0x44), _mm512_shuffle_f32x4(a.v, b.v, 0xee));
  const __m512 cd =
      _mm512_add_ps(_mm512_shuffle_f32x4(c.v, d.v, 0x44), _mm512_shuffle_f32x4(c.v, d.v, 0xee));
  return _mm512_add_ps(_mm512_shuffle_f32x4(ab, cd, 0x88), _mm512_shuffle_f32x4(ab, cd, 0xdd));
}

// The sums of four vectors, each folded as l with l+8, l+4, l+2, l+1.
inline void reduce_add4(Vec a, Vec b, Vec c, Vec d, float* sums) {
  __m512 lanes = fold_lanes(a, b, c, d);
  lanes = _mm512_add_ps(lanes, _mm512_permute_ps(lanes, 0x4e));
  lanes = _mm512_add_ps(lanes, _mm512_permute_ps(lanes, 0xb1));
  _mm_storeu_ps(sums, _mm512_castps512_ps128(_mm512_maskz_compress_ps(0x1111, lanes)));
}

// The same of R times four vectors, four sums to each place.
template <int R>
inline void reduce_add4(const Vec (&v)[R][4], float* const (&sums)[R]) {
  if constexpr (R == 4) {
    // Lane r of t[i] is row r's vector i, folded to four.
    __m512 t[4];
    for (int i = 0; i < 4; ++i) t[i] = fold_lanes(v[0][i], v[1][i], v[2][i], v[3][i]);
    const __m512 x =
        _mm512_add_ps(_mm512_shuffle_ps(t[0], t[1], 0x44), _mm512_shuffle_ps(t[0], t[1], 0xee));
    const __m512 y =
        _mm512_add_ps(_mm512_shuffle_ps(t[2], t[3], 0x44), _mm512_shuffle_ps(t[2], t[3], 0xee));
    const __m512 all = _mm512_add_ps(_mm512_shuffle_ps(x, y, 0x88), _mm512_shuffle_ps(x, y, 0xdd));
    _mm_storeu_ps(sums[0], _mm512_castps512_ps128(all));
    _mm_storeu_ps(sums[1], _mm512_extractf32x4_ps(all, 1));
    _mm_storeu_ps(sums[2], _mm512_extractf32x4_ps(all, 2));
    _mm_storeu_ps(sums[3], _mm512_extractf32x4_ps(all, 3));
  } else {
    for (int r = 0; r < R; ++r) reduce_add4(v[r][0], v[r][1], v[r][2], v[r][3], sums[r]);
  }
}

// Bit i: p[i] has a bit of `wanted`, for eight of them.
inline uint32_t test_eight(const uint64_t* p, uint64_t wanted) {
  return _mm512_test_epi64_mask(_mm512_loadu_si512(p),
                                _mm512_set1_epi64(static_cast<int64_t>(wanted)));
}

// --- integers that order as floats do (largest.cpp), 16 at a time ---

inline void store(int32_t* p, Keys a) {
  _mm512_storeu_si512(p, a.v);
}
inline Keys load_keys(const int32_t* p) {
  return {_mm512_loadu_si512(p)};
}
// |x|, NaN above infinity.
inline Keys magnitude_keys(Vec x) {
  return {_mm512_and_si512(_mm512_castps_si512(x.v), _mm512_set1_epi32(0x7fffffff))};
}
// x, -0 equal to +0, NaN lowest.
inline Keys value_keys(Vec x) {
  const __m512i u = _mm512_castps_si512(_mm512_add_ps(x.v, _mm512_setzero_ps()));
  const __m512i flip = _mm512_srli_epi32(_mm512_srai_epi32(u, 31), 1);
  const __mmask16 nan = _mm512_cmp_ps_mask(x.v, x.v, _CMP_UNORD_Q);
  return {_mm512_mask_set1_epi32(_mm512_xor_si512(u, flip), nan, -0x7fffffff - 1)};
}
inline Keys min(Keys a, Keys b) {
  return {_mm512_min_epi32(a.v, b.v)};
}
inline Keys max(Keys a, Keys b) {
  return {_mm512_max_epi32(a.v, b.v)};
}
// Bit i: element i is greater than t.
inline uint32_t greater(Keys a, int32_t t) {
  return _mm512_cmpgt_epi32_mask(a.v, _mm512_set1_epi32(t));
}
// The elements whose bit is set, moved together to p; writes 16 elements.
inline void compress(int32_t* p, Keys a, uint32_t bits) {
  _mm512_storeu_si512(p, _mm512_maskz_compress_epi32(static_cast<__mmask16>(bits), a.v));
}

// --- exact sums of products of codes (integer_products.cpp) ---

// 32 codes, widened.
struct WideCodes {
  __m512i v;
};
inline WideCodes load_codes(const void* p) {
  return {_mm512_cvtepi8_epi16(_mm256_loadu_si256(static_cast<const __m256i*>(p)))};
}
// Parts of one sum.
struct DotSum {
  __m512i v = _mm512_setzero_si512();
};
inline void add_products(DotSum& sum, WideCodes a, WideCodes b) {
#ifdef __AVX512VNNI__
  sum.v = _mm512_dpwssd_epi32(sum.v, a.v, b.v);
#else
  sum.v = _mm512_add_epi32(sum.v, _mm512_madd_epi16(a.v, b.v));
#endif
}
inline int32_t total(DotSum sum) {
  return _mm512_reduce_add_epi32(sum.v);
}
inline Vec as_floats(DotSum sum) {
  return {_mm512_cvtepi32_ps(sum.v)};
}
inline WideCodes load_wide(const int16_t* p) {
  return {_mm512_loadu_si512(p)};
}
// To the nearest whole number, ties to even.
struct Whole {
  __m512i v;
};
inline Whole no_whole() {
  return {_mm512_setzero_si512()};
}
inline Whole to_whole(Vec a) {
  return {_mm512_cvtps_epi32(a.v)};
}
inline Whole operator+(Whole a, Whole b) {
  return {_mm512_add_epi32(a.v, b.v)};
}
inline void store(int32_t* p, Whole a) {
  _mm512_storeu_si512(p, a.v);
}
// Numbers of 16 bits: 16 in a row, or one of each as a pair, the first in the lower half.
inline void store_wide(int16_t* p, Vec a) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p),
                      _mm512_cvtepi32_epi16(_mm512_cvtps_epi32(a.v)));
}
inline Whole pairs_of(Whole a, Whole b) {
  return {_mm512_mask_blend_epi16(0xaaaaaaaa, a.v, _mm512_slli_epi32(b.v, 16))};
}

// Four groups of 4-bit codes, a quarter of the register each; fewer where the rest are not in
// memory.
struct Nibbles {
  __m512i v;
};
inline Nibbles load_nibbles(const std::byte* p, All) {
  return {_mm512_loadu_si512(p)};
}
inline Nibbles load_nibbles(const std::byte* p, First groups) {
  return {_mm512_maskz_loadu_epi64(static_cast<__mmask8>((1u << 2 * groups.n) - 1u), p)};
}
// Two bytes of a, two of b, and so on, of the first or of the second half of each group.
inline Nibbles pair_first(const Nibbles& a, const Nibbles& b) {
  return {_mm512_unpacklo_epi16(a.v, b.v)};
}
inline Nibbles pair_second(const Nibbles& a, const Nibbles& b) {
  return {_mm512_unpackhi_epi16(a.v, b.v)};
}
// What the codes in bits 4 * N.. of every two bytes stand for.
template <int N>
inline WideCodes nibble_values(const Nibbles& codes) {
  const __m512i values = _mm512_cvtepi8_epi16(
      _mm256_broadcastsi128_si256(_mm_load_si128(reinterpret_cast<const __m128i*>(kInt4Values))));
  // Looks at the low five bits: the table holds all values twice.
  return {_mm512_permutexvar_epi16(_mm512_srli_epi16(codes.v, 4 * N), values)};
}
// Four numbers, each to a quarter of the lanes.
inline __m512i quarters() {
  return _mm512_set_epi32(3, 3, 3, 3, 2, 2, 2, 2, 1, 1, 1, 1, 0, 0, 0, 0);
}
inline WideCodes spread(const int32_t* p) {
  const __m128i four = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
  return {_mm512_permutexvar_epi32(quarters(), _mm512_castsi128_si512(four))};
}
inline Vec spread(const float* p) {
  return {_mm512_permutexvar_ps(quarters(), _mm512_castps128_ps512(_mm_loadu_ps(p)))};
}
inline Vec spread(const bf16* p, All) {
  alignas(64) static constexpr uint32_t kUpperHalves[16] = {
      0x0100ffff, 0x0100ffff, 0x0100ffff, 0x0100ffff, 0x0302ffff, 0x0302ffff,
      0x0302ffff, 0x0302ffff, 0x0504ffff, 0x0504ffff, 0x0504ffff, 0x0504ffff,
      0x0706ffff, 0x0706ffff, 0x0706ffff, 0x0706ffff};
  const __m512i four =
      _mm512_broadcastq_epi64(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p)));
  return {_mm512_castsi512_ps(_mm512_shuffle_epi8(four, _mm512_load_si512(kUpperHalves)))};
}

// 32 codes of each of two rows, column by column: columns 0..7 and 16..23, then the others.
struct CodePairs {
  __m512i even, odd;
};
inline CodePairs load_pairs(const std::byte* a, const std::byte* b) {
  const __m256i x = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(a));
  const __m256i y = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(b));
  return {_mm512_cvtepi8_epi16(_mm256_unpacklo_epi8(x, y)),
          _mm512_cvtepi8_epi16(_mm256_unpackhi_epi8(x, y))};
}
// Sums of 32 columns.
struct ColumnSums {
  __m512i even, odd;
};
inline ColumnSums no_columns() {
  return {_mm512_setzero_si512(), _mm512_setzero_si512()};
}
inline ColumnSums load_columns(const int32_t* p) {
  return {_mm512_loadu_si512(p), _mm512_loadu_si512(p + 16)};
}
inline void store_columns(int32_t* p, const ColumnSums& s) {
  _mm512_storeu_si512(p, s.even);
  _mm512_storeu_si512(p + 16, s.odd);
}
// `factors`: the first row's in the lower half.
inline void add_products(ColumnSums& s, const CodePairs& pairs, int32_t factors) {
  const __m512i f = _mm512_set1_epi32(factors);
#ifdef __AVX512VNNI__
  s.even = _mm512_dpwssd_epi32(s.even, pairs.even, f);
  s.odd = _mm512_dpwssd_epi32(s.odd, pairs.odd, f);
#else
  s.even = _mm512_add_epi32(s.even, _mm512_madd_epi16(pairs.even, f));
  s.odd = _mm512_add_epi32(s.odd, _mm512_madd_epi16(pairs.odd, f));
#endif
}
inline void columns_as_floats(const ColumnSums& s, Vec& first, Vec& second) {
  first.v = _mm512_cvtepi32_ps(_mm512_shuffle_i64x2(s.even, s.odd, 0x44));
  second.v = _mm512_cvtepi32_ps(_mm512_shuffle_i64x2(s.even, s.odd, 0xee));
}

}  // namespace sol::kernels::SOL_ISA_NAME
