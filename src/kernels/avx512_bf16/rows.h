// What products of few and of many rows share.
#pragma once

#include "kernels/avx512_bf16/pairs.h"
#include "kernels/avx512_bf16/products.h"
#include "kernels/isa/channels.h"

namespace sol::kernels::avx512_bf16 {

// As the functions of products.h, for few rows, at most as many as the constants say, and for any
// number. The former are faster where both can be had, as measured on 2048x8192.
inline constexpr int kFewByOutput = 16, kFewByChannel = 8;
void few_out_major(const WeightView& w, const RoundedRows& x, int out_begin, int out_end, float* y,
                   int64_t y_stride);
void few_in_major(const Channels& channels, const RoundedRows& x, int out_begin, int out_end,
                  float* y, int64_t y_stride);
void few_codes_out_major(const WeightView& w, const RoundedRows& x, int out_begin, int out_end,
                         float* y, int64_t y_stride);
void few_codes_in_major(const Channels& channels, const RoundedRows& x, int out_begin, int out_end,
                        float* y, int64_t y_stride);
void many_out_major(const WeightView& w, const RoundedRows& x, int out_begin, int out_end, float* y,
                    int64_t y_stride);
void many_in_major(const Channels& channels, const RoundedRows& x, int out_begin, int out_end,
                   float* y, int64_t y_stride);

// The columns of y that a tile has: all of them, or the first `n` (fewer than 64). Stores with a
// mask are several times slower on some processors, so that it pays to tell them apart.
struct AllColumns {
  Vec load_from(const float* y, int column) const { return load(y + column); }
  void store_to(float* y, int column, Vec v) const { store(y + column, v); }
};
struct FirstColumns {
  int n;
  Vec load_from(const float* y, int column) const {
    return {_mm512_maskz_loadu_ps(mask(column), y + column)};
  }
  void store_to(float* y, int column, Vec v) const {
    _mm512_mask_storeu_ps(y + column, mask(column), v.v);
  }
  __mmask16 mask(int column) const {
    return static_cast<__mmask16>(((uint64_t{1} << n) - 1) >> column);
  }
};
template <int All, typename Body>
void with_columns(int n, const Body& body) {
  if (n >= All)
    body(AllColumns{});
  else
    body(FirstColumns{n});
}

// Two channels' weights of kPairOutputs outputs as pairs; zeros behind the first `outputs`, and for
// the second channel where it is null.
inline constexpr int kPairOutputs = 2 * kWidth;
struct Pairs {
  __m512i low, high;  // of the first 16 outputs, of the others
};
inline Pairs interleaved(const bf16* first, const bf16* second, int outputs) {
  const __m512i low = _mm512_set_epi16(47, 15, 46, 14, 45, 13, 44, 12, 43, 11, 42, 10, 41, 9, 40, 8,
                                       39, 7, 38, 6, 37, 5, 36, 4, 35, 3, 34, 2, 33, 1, 32, 0);
  const __m512i high = _mm512_add_epi16(low, _mm512_set1_epi16(kWidth));
  const __mmask32 mask = first_of_32(outputs);
  const __m512i a = _mm512_maskz_loadu_epi16(mask, first);
  const __m512i b = second ? _mm512_maskz_loadu_epi16(mask, second) : _mm512_setzero_si512();
  return {_mm512_permutex2var_epi16(a, low, b), _mm512_permutex2var_epi16(a, high, b)};
}

}  // namespace sol::kernels::avx512_bf16
