// 8-bit codes as bf16, which holds them exactly. The bytes of a bf16 number are looked up by the
// code's size: 64 codes in six instructions, where widening to integers, to float32 and rounding
// takes ten.
#pragma once

#include "kernels/avx512_bf16/rows.h"

namespace sol::kernels::avx512_bf16 {

struct alignas(64) ByteTable {
  uint8_t at[64];
};

// Of the bf16 numbers from `from` on, the bytes that begin at bit `shift`.
constexpr ByteTable bytes_of_numbers(int from, int shift) {
  ByteTable table{};
  for (int i = 0; i < 64; ++i) {
    const auto bits = __builtin_bit_cast(uint32_t, static_cast<float>(from + i)) >> 16;
    table.at[i] = static_cast<uint8_t>(bits >> shift);
  }
  return table;
}

// Where the bytes of 32 numbers out of 64 are: low ones are counted from 0, high ones from 64. In
// order from `first` on, or in pairs: one from there on, one from 32 behind it, ...
constexpr ByteTable byte_places(int first, bool pairs) {
  ByteTable table{};
  for (int i = 0; i < 64; ++i) {
    const int number = pairs ? first + i / 4 + i / 2 % 2 * 32 : first + i / 2;
    table.at[i] = static_cast<uint8_t>(number + i % 2 * 64);
  }
  return table;
}

inline constexpr ByteTable kLowBytes[2] = {bytes_of_numbers(0, 0), bytes_of_numbers(64, 0)};
inline constexpr ByteTable kHighBytes[2] = {bytes_of_numbers(0, 8), bytes_of_numbers(64, 8)};
inline constexpr ByteTable kInOrder[2] = {byte_places(0, false), byte_places(32, false)};
inline constexpr ByteTable kInPairs[2] = {byte_places(0, true), byte_places(16, true)};

// The bytes of 64 codes' numbers. There is no code of -128 (compressed.h), which would count as 0.
struct NumberBytes {
  __m512i low, high;
};

inline __m512i load_table(const ByteTable& table) {
  return _mm512_load_si512(table.at);
}
inline NumberBytes bytes_of(__m512i codes) {
  const __m512i size = _mm512_abs_epi8(codes);
  const auto looked_up = [&](const ByteTable(&table)[2]) {
    return _mm512_permutex2var_epi8(load_table(table[0]), size, load_table(table[1]));
  };
  constexpr int kOrOfAnd = 0xf8;  // a | (b & c)
  const __m512i sign = _mm512_set1_epi8(-128);
  return {looked_up(kLowBytes),
          _mm512_ternarylogic_epi32(looked_up(kHighBytes), codes, sign, kOrOfAnd)};
}
inline __m512i joined(const NumberBytes& bytes, const ByteTable& places) {
  return _mm512_permutex2var_epi8(bytes.low, load_table(places), bytes.high);
}

// 64 codes in their order.
struct Halves {
  __m512i first, second;
};
inline Halves halves_of_codes(__m512i codes) {
  const NumberBytes bytes = bytes_of(codes);
  return {joined(bytes, kInOrder[0]), joined(bytes, kInOrder[1])};
}

// Two channels' codes of kPairOutputs outputs, one channel in each half, as pairs.
inline Pairs pairs_of_codes(__m512i codes) {
  const NumberBytes bytes = bytes_of(codes);
  return {joined(bytes, kInPairs[0]), joined(bytes, kInPairs[1])};
}

}  // namespace sol::kernels::avx512_bf16
