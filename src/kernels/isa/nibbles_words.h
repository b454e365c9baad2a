// Products of 4-bit codes with whole numbers, as words of 16 bits; included by nibbles.h.
#pragma once

namespace sol::kernels::SOL_ISA_NAME {

// A word of codes has those of two neighbours in its lower bits and of their partners 16 further
// on in its upper ones: calls body.operator()<N>() for each, N counting from the lower.
template <typename Body>
inline void for_codes_of_words(const Body& body) {
  body.template operator()<0>();
  body.template operator()<1>();
  body.template operator()<2>();
  body.template operator()<3>();
}

struct NibbleInputs {
  alignas(64) int16_t words[4][kGroup];

  void set_to(const int16_t (&numbers)[kFixedInputs]) {
    for (int i = 0; i < kFixedInputs; ++i) {
      const int group = i / kGroup, half = i / kWidth % 2, odd = i % 2, word = i % kWidth / 2;
      words[half + 2 * odd][8 * group + word] = numbers[i];
    }
  }
};

inline DotSum products(const NibbleInputs& x, const Nibbles& codes) {
  DotSum sum;
  for_codes_of_words(
      [&]<int N>() { add_products(sum, nibble_values<N>(codes), load_wide(x.words[N])); });
  return sum;
}

inline constexpr int kStepChannels = 2;

struct StepCodes {
  Nibbles pairs;
};
template <bool kSecond, typename Part>
inline StepCodes load_step(const std::byte* const* rows, int64_t offset, Part part) {
  const Nibbles a = load_nibbles(rows[0] + offset, part), b = load_nibbles(rows[1] + offset, part);
  return {kSecond ? pair_second(a, b) : pair_first(a, b)};
}

template <int Groups>
struct NibbleFactors {
  alignas(64) int32_t pairs[kFixedChannels / kStepChannels][Groups];

  void set_step(int step, int g, const Whole* numbers) {
    store(pairs[step] + g, pairs_of(numbers[0], numbers[1]));
  }
  void set_total(int, Whole) {}
};

struct HalfSums {
  DotSum sums[4];

  template <int Groups>
  void begin(const NibbleFactors<Groups>&, int) {}
  template <int Groups>
  void add(const StepCodes& codes, const NibbleFactors<Groups>& factors, int step, int g) {
    const WideCodes factor = spread(factors.pairs[step] + g);
    for_codes_of_words(
        [&]<int N>() { add_products(sums[N], nibble_values<N>(codes.pairs), factor); });
  }
  DotSum sum(int i) const { return sums[i]; }
  static int place(int output) {
    const int half = output / kWidth % 2, odd = output % 2, word = output % kWidth / 2;
    return kWidth * (4 * (word / 4) + half + 2 * odd) + 4 * (output / kGroup) + word % 4;
  }
};

}  // namespace sol::kernels::SOL_ISA_NAME
