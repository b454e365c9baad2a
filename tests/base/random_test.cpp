#include "base/random.h"

#include <array>
#include <cmath>
#include <map>
#include <set>
#include <vector>

#include "support.h"

namespace sol {
namespace {

using Words = std::array<uint32_t, 4>;

// Known answers of the authors' own library (Random123, kat_vectors, philox4x32 10).
TEST(Random, PhiloxGivesThePublishedVectors) {
  EXPECT_EQ(philox4x32({0, 0, 0, 0}, {0, 0}),
            (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox4x32({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}),
            (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Random, SameKeySameDraws) {
  const RandomKey key{
      .seed = 7, .stream = RandomStream::action, .block = 3, .rollout = 2, .step = 5};
  Random a(key), b(key);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(a.next_u32(), b.next_u32());
}

// Every part of the key matters, including the bits beyond 32 of the wide ones.
TEST(Random, DifferentKeysDifferentDraws) {
  const RandomKey base{
      .seed = 1, .stream = RandomStream::token, .block = 0, .rollout = 0, .step = 0};
  std::vector<RandomKey> keys(1, base);
  for (const uint64_t seed : {uint64_t{2}, uint64_t{1} << 40 | 1}) {
    keys.push_back(base);
    keys.back().seed = seed;
  }
  for (const uint64_t block : {uint64_t{1}, uint64_t{1} << 32, (uint64_t{1} << 40) - 1}) {
    keys.push_back(base);
    keys.back().block = block;
  }
  for (const uint32_t rollout : {1u, (1u << 24) - 1}) {
    keys.push_back(base);
    keys.back().rollout = rollout;
  }
  keys.push_back(base);
  keys.back().step = 1;
  keys.push_back(base);
  keys.back().stream = RandomStream::shuffle;
  std::set<uint64_t> first;
  for (const RandomKey& key : keys) first.insert(Random(key).next_u64());
  EXPECT_EQ(first.size(), keys.size());
}

TEST(Random, UniformLiesInRangeWithTheRightMoments) {
  Random random({.seed = 11});
  double sum = 0, squares = 0;
  constexpr int n = 100000;
  for (int i = 0; i < n; ++i) {
    const double u = random.uniform_double();
    ASSERT_GE(u, 0.0);
    ASSERT_LT(u, 1.0);
    sum += u;
    squares += u * u;
  }
  EXPECT_NEAR(sum / n, 0.5, 0.005);
  EXPECT_NEAR(squares / n, 1.0 / 3.0, 0.005);
}

TEST(Random, BelowIsUniform) {
  Random random({.seed = 12});
  std::array<int, 7> counts{};
  constexpr int n = 70000;
  for (int i = 0; i < n; ++i) {
    const uint32_t x = random.below(7);
    ASSERT_LT(x, 7u);
    ++counts[x];
  }
  // Chi-squared with 6 degrees of freedom: 22.5 has probability 0.001; the draws are fixed.
  double chi = 0;
  for (const int count : counts) chi += (count - 10000.0) * (count - 10000.0) / 10000.0;
  EXPECT_LT(chi, 22.5);
  EXPECT_EQ(Random({.seed = 1}).below(1), 0u);
}

// n just above 2^31 rejects almost half of the draws: the path that a small n hardly ever takes.
TEST(Random, BelowOfALargeNumberIsUniform) {
  Random random({.seed = 13});
  const uint32_t n = 0x80000001u;
  int low = 0;
  for (int i = 0; i < 20000; ++i) {
    const uint32_t x = random.below(n);
    ASSERT_LT(x, n);
    low += x < n / 2;
  }
  EXPECT_NEAR(low, 10000, 300);
}

TEST(Random, NormalHasTheRightMoments) {
  Random random({.seed = 14});
  double sum = 0, squares = 0, fourth = 0;
  constexpr int n = 100000;
  for (int i = 0; i < n; ++i) {
    const double x = random.normal();
    ASSERT_TRUE(std::isfinite(x));
    sum += x;
    squares += x * x;
    fourth += x * x * x * x;
  }
  EXPECT_NEAR(sum / n, 0.0, 0.02);
  EXPECT_NEAR(squares / n, 1.0, 0.02);
  EXPECT_NEAR(fourth / n, 3.0, 0.15);
}

}  // namespace
}  // namespace sol
