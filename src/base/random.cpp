#include "base/random.h"

#include <cassert>
#include <cmath>
#include <numbers>

namespace sol {
namespace {

struct Product {
  uint32_t high, low;
};
Product multiply(uint32_t a, uint32_t b) {
  const uint64_t product = static_cast<uint64_t>(a) * b;
  return {static_cast<uint32_t>(product >> 32), static_cast<uint32_t>(product)};
}

}  // namespace

std::array<uint32_t, 4> philox4x32(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const Product p0 = multiply(0xD2511F53u, counter[0]);
    const Product p1 = multiply(0xCD9E8D57u, counter[2]);
    counter = {p1.high ^ counter[1] ^ key[0], p1.low, p0.high ^ counter[3] ^ key[1], p0.low};
    key[0] += 0x9E3779B9u;
    key[1] += 0xBB67AE85u;
  }
  return counter;
}

// The counter's last word counts blocks of four draws; the rest holds what identifies the key, so
// that two keys never share a counter. The stream is folded into the key by a Philox call: 64 bits
// of seed and 32 of stream do not fit into the 64 bits of a key side by side.
Random::Random(const RandomKey& key) {
  assert(key.block < (uint64_t{1} << 40) && key.rollout < (1u << 24));
  const auto derived =
      philox4x32({static_cast<uint32_t>(key.stream), 0, 0, 0x736f6c21u},
                 {static_cast<uint32_t>(key.seed), static_cast<uint32_t>(key.seed >> 32)});
  key_ = {derived[0], derived[1]};
  counter_ = {static_cast<uint32_t>(key.block),
              static_cast<uint32_t>(key.block >> 32) << 24 | key.rollout, key.step, 0};
}

uint32_t Random::next_u32() {
  if (used_ == 4) {
    block_ = philox4x32(counter_, key_);
    ++counter_[3];
    used_ = 0;
  }
  return block_[static_cast<size_t>(used_++)];
}

uint64_t Random::next_u64() {
  const uint64_t low = next_u32();
  return static_cast<uint64_t>(next_u32()) << 32 | low;
}

double Random::uniform_double() {
  return static_cast<double>(next_u64() >> 11) * 0x1p-53;
}

// Lemire, "Fast random integer generation in an interval" (2019).
uint32_t Random::below(uint32_t n) {
  assert(n > 0);
  Product product = multiply(next_u32(), n);
  if (product.low < n) {
    const uint32_t threshold = -n % n;
    while (product.low < threshold) product = multiply(next_u32(), n);
  }
  return product.high;
}

double Random::normal() {
  const double radius = std::sqrt(-2.0 * std::log(1.0 - uniform_double()));  // 1 - u is never 0
  return radius * std::cos(2.0 * std::numbers::pi * uniform_double());
}

}  // namespace sol
