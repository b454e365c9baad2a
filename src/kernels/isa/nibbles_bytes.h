// Products of 4-bit codes with whole numbers, byte by byte (AVX512-VNNI and VBMI); included by
// nibbles.h. The instruction multiplies unsigned bytes by signed ones: values are raised by
// kOffset, whole numbers are an upper and a lower signed byte.
#pragma once

namespace sol::kernels::SOL_ISA_NAME {

inline constexpr int kOffsetBits = 7, kOffset = 1 << kOffsetBits;
static_assert(kLargestFixed <= 127 * 256 + 127);  // no upper byte is above 127

// What the lower four bits of bytes stand for, raised; the upper ones may be anything.
inline __m512i raised_values(__m512i codes) {
  const __m128i values = _mm_load_si128(reinterpret_cast<const __m128i*>(kInt4Values));
  const __m128i raised = _mm_xor_si128(values, _mm_set1_epi8(static_cast<char>(kOffset)));
  // Looks at six bits: the table holds all values four times.
  return _mm512_permutexvar_epi8(codes, _mm512_broadcast_i32x4(raised));
}
inline __m512i first_values(__m512i codes) {
  return raised_values(codes);
}
inline __m512i second_values(__m512i codes) {
  return raised_values(_mm512_srli_epi16(codes, 4));
}

// Sums of products with upper and lower bytes.
struct ByteSums {
  __m512i upper = _mm512_setzero_si512(), lower = _mm512_setzero_si512();

  void add(__m512i values, __m512i upper_bytes, __m512i lower_bytes) {
    upper = _mm512_dpbusd_epi32(upper, values, upper_bytes);
    lower = _mm512_dpbusd_epi32(lower, values, lower_bytes);
  }
  DotSum sum() const { return {_mm512_add_epi32(_mm512_slli_epi32(upper, 8), lower)}; }
};

inline void split(int number, int8_t& upper, int8_t& lower) {
  lower = static_cast<int8_t>(number);
  upper = static_cast<int8_t>((number - lower) >> 8);
}

struct NibbleInputs {
  // Of weights' first and second halves of groups.
  alignas(64) int8_t upper[2][2 * kGroup], lower[2][2 * kGroup];
  alignas(64) int32_t correction[kWidth];  // what raising the values adds to lanes, negative

  void set_to(const int16_t (&numbers)[kFixedInputs]) {
    for (int32_t& lane : correction) lane = 0;
    for (int i = 0; i < kFixedInputs; ++i) {
      const int half = i / kWidth % 2, at = kWidth * (i / kGroup) + i % kWidth;
      split(numbers[i], upper[half][at], lower[half][at]);
      correction[at / 4] -= kOffset * numbers[i];
    }
  }
};

inline DotSum products(const NibbleInputs& x, const Nibbles& codes) {
  ByteSums sums{_mm512_setzero_si512(), _mm512_load_si512(x.correction)};
  sums.add(first_values(codes.v), _mm512_load_si512(x.upper[0]), _mm512_load_si512(x.lower[0]));
  sums.add(second_values(codes.v), _mm512_load_si512(x.upper[1]), _mm512_load_si512(x.lower[1]));
  return sums.sum();
}

inline constexpr int kStepChannels = 4;

// A byte of each of four rows, and so on: of every group's first (or, kSecond, last) eight bytes,
// four of them each.
struct StepCodes {
  __m512i part[2];
};
template <bool kSecond, typename Part>
inline StepCodes load_step(const std::byte* const* rows, int64_t offset, Part part) {
  __m512i row[4];
  for (int c = 0; c < 4; ++c) row[c] = load_nibbles(rows[c] + offset, part).v;
  const __m512i a =
      kSecond ? _mm512_unpackhi_epi8(row[0], row[1]) : _mm512_unpacklo_epi8(row[0], row[1]);
  const __m512i b =
      kSecond ? _mm512_unpackhi_epi8(row[2], row[3]) : _mm512_unpacklo_epi8(row[2], row[3]);
  return {{_mm512_unpacklo_epi16(a, b), _mm512_unpackhi_epi16(a, b)}};
}

template <int Groups>
struct NibbleFactors {
  // Four channels' bytes each.
  alignas(64) int32_t upper[kFixedChannels / kStepChannels][Groups];
  alignas(64) int32_t lower[kFixedChannels / kStepChannels][Groups];
  alignas(64) int32_t correction[Groups];  // what raising the values adds, negative

  void set_step(int step, int g, const Whole* numbers) {
    // Words of two numbers each; where the lower byte is negative the upper one is one more.
    const __m512i a = pairs_of(numbers[0], numbers[1]).v, b = pairs_of(numbers[2], numbers[3]).v;
    const __m512i carry = _mm512_set1_epi16(0x80);
    _mm512_store_si512(lower[step] + g, bytes<0>(a, b));
    _mm512_store_si512(upper[step] + g,
                       bytes<1>(_mm512_add_epi16(a, carry), _mm512_add_epi16(b, carry)));
  }
  // The sum of all numbers.
  void set_total(int g, Whole total) {
    const __m512i raised = _mm512_slli_epi32(total.v, kOffsetBits);
    _mm512_store_si512(correction + g, _mm512_sub_epi32(_mm512_setzero_si512(), raised));
  }

 private:
  // Byte N of a's two words in a lane and of b's.
  template <int N>
  static __m512i bytes(__m512i a, __m512i b) {
    const __m512i lane = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
    const __m512i places = _mm512_add_epi8(_mm512_set1_epi32(0x42400200 + 0x01010101 * N),
                                           _mm512_mullo_epi32(lane, _mm512_set1_epi32(0x04040404)));
    return _mm512_permutex2var_epi8(a, places, b);
  }
};

struct HalfSums {
  ByteSums sums[4];

  template <int Groups>
  void begin(const NibbleFactors<Groups>& factors, int g) {
    const __m512i correction = spread(factors.correction + g).v;
    for (ByteSums& part : sums) part.lower = correction;
  }
  template <int Groups>
  void add(const StepCodes& codes, const NibbleFactors<Groups>& factors, int step, int g) {
    const __m512i upper = spread(factors.upper[step] + g).v;
    const __m512i lower = spread(factors.lower[step] + g).v;
    for (int p = 0; p < 2; ++p) {
      sums[2 * p].add(first_values(codes.part[p]), upper, lower);
      sums[2 * p + 1].add(second_values(codes.part[p]), upper, lower);
    }
  }
  DotSum sum(int i) const { return sums[i].sum(); }
  static int place(int output) {
    const int half = output / kWidth % 2, byte = output % kWidth;
    return kWidth * (4 * (byte / 8) + 2 * (byte / 4 % 2) + half) + 4 * (output / kGroup) + byte % 4;
  }
};

}  // namespace sol::kernels::SOL_ISA_NAME
