#include <fmt/format.h>

#include <limits>

#include "kernel_cases.h"

namespace sol::kernels {
namespace {

using test::expect_near;
using test::kTypes;
using test::random_floats;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();
const int kSizes[] = {1, 2, 7, 15, 16, 17, 31, 32, 33, 63, 64, 100, 129, 1000, 4113};

class Elementwise : public test::EachIsa {};
SOL_FOR_EACH_ISA(Elementwise);

TEST_P(Elementwise, RmsNormAgreesBitForBit) {
  for (const int n : kSizes) {
    const auto x = random_floats(n, 1, 3.0f), weight = random_floats(n, 2);
    std::vector<float> expected(n), got(n);
    reference().rms_norm(x.data(), weight.data(), 1e-5f, n, expected.data());
    fast().rms_norm(x.data(), weight.data(), 1e-5f, n, got.data());
    EXPECT_SAME_BITS(got, expected);
    double square = 0;
    for (const float v : x) square += static_cast<double>(v) * v;
    EXPECT_NEAR(got[0], x[0] / std::sqrt(square / n + 1e-5) * weight[0], 1e-5);
  }
}

TEST_P(Elementwise, LayerNormAgreesBitForBit) {
  for (const int n : kSizes) {
    const auto x = random_floats(n, 3, 3.0f), weight = random_floats(n, 4),
               bias = random_floats(n, 5);
    std::vector<float> expected(n), got(n);
    reference().layer_norm(x.data(), weight.data(), bias.data(), 1e-5f, n, expected.data());
    fast().layer_norm(x.data(), weight.data(), bias.data(), 1e-5f, n, got.data());
    EXPECT_SAME_BITS(got, expected);
    double mean = 0, variance = 0;
    for (const float v : x) mean += v / n;
    for (const float v : x) variance += (v - mean) * (v - mean) / n;
    EXPECT_NEAR(got[0], (x[0] - mean) / std::sqrt(variance + 1e-5) * weight[0] + bias[0], 1e-5);
  }
}

TEST_P(Elementwise, RotaryAgreesBitForBit) {
  for (const int dim : {2, 6, 16, 34, 64, 80, 128}) {
    const int heads = 3;
    const auto x = random_floats(heads * dim, 6), cos = random_floats(dim / 2, 7),
               sin = random_floats(dim / 2, 8);
    auto expected = x, got = x;
    reference().rotary(expected.data(), heads, dim, cos.data(), sin.data());
    fast().rotary(got.data(), heads, dim, cos.data(), sin.data());
    EXPECT_SAME_BITS(got, expected);
    EXPECT_NEAR(got[dim], x[dim] * cos[0] - x[dim + dim / 2] * sin[0], 1e-6);
    EXPECT_NEAR(got[dim + dim / 2], x[dim + dim / 2] * cos[0] + x[dim] * sin[0], 1e-6);
  }
}

TEST_P(Elementwise, AddAgreesBitForBit) {
  for (const int n : kSizes) {
    const auto y = random_floats(n, 9);
    auto expected = random_floats(n, 10), got = expected;
    reference().add(expected.data(), y.data(), n);
    fast().add(got.data(), y.data(), n);
    EXPECT_SAME_BITS(got, expected);
  }
}

TEST_P(Elementwise, SiluAgrees) {
  for (const int n : kSizes) {
    auto gate = random_floats(n, 11, 5.0f);
    const auto up = random_floats(n, 12);
    gate[0] = -90.0f;
    gate[n / 2] = n > 2 ? 200.0f : 1.0f;
    gate[n - 1] = n > 2 ? kNan : 1.0f;
    std::vector<float> expected(n), got(n);
    reference().silu_mul(gate.data(), up.data(), n, expected.data());
    fast().silu_mul(gate.data(), up.data(), n, got.data());
    expect_near(got, expected, 1e-30f, 1e-6f);
  }
}

TEST_P(Elementwise, GeluAgreesEverywhere) {
  std::vector<float> x;
  for (float v = -12.0f; v < 12.0f; v += 0.00371f) x.push_back(v);
  x.insert(x.end(), {0.0f, -0.0f, 1e-20f, -1e-20f, 1e4f, -1e4f, 1e30f, 1e38f, kInf, kNan});
  auto expected = x, got = x;
  reference().gelu(expected.data(), static_cast<int>(x.size()));
  fast().gelu(got.data(), static_cast<int>(x.size()));
  expect_near(got, expected, 4e-7f, 2e-7f);
  for (const int n : kSizes) {
    auto a = random_floats(n, 13), b = a;
    reference().gelu(a.data(), n);
    fast().gelu(b.data(), n);
    expect_near(b, a, 4e-7f, 2e-7f);
  }
}

TEST_P(Elementwise, FakeQuantiseAgreesBitForBit) {
  for (const int n : kSizes) {
    for (int bits = 2; bits <= 17; ++bits) {
      auto expected = random_floats(n, 14 + bits, 2.0f);
      expected[0] = 3.5f;
      auto got = expected;
      const auto before = got;
      reference().fake_quantise(expected.data(), n, bits);
      fast().fake_quantise(got.data(), n, bits);
      EXPECT_SAME_BITS(got, expected);
      if (bits >= 16) {
        EXPECT_SAME_BITS(got, before);
      }
    }
  }
}

TEST_P(Elementwise, FakeQuantiseRoundsTiesToEvenAndSurvivesOddInput) {
  std::vector<float> z{7.0f, 0.5f, 1.5f, 2.5f, -0.5f, -1.5f, -2.5f, -7.0f};  // step 1 at 4 bits
  fast().fake_quantise(z.data(), static_cast<int>(z.size()), 4);
  EXPECT_THAT(z, testing::ElementsAre(7, 0, 2, 2, 0, -2, -2, -7));
  std::vector<float> zeros(5, 0.0f);
  fast().fake_quantise(zeros.data(), 5, 3);
  EXPECT_THAT(zeros, testing::Each(0.0f));
  std::vector<float> odd{1.0f, kNan, -3.0f};
  fast().fake_quantise(odd.data(), 3, 3);
  EXPECT_EQ(odd[0], 1.0f);
  EXPECT_TRUE(std::isnan(odd[1]));
  EXPECT_EQ(odd[2], -3.0f);
}

TEST_P(Elementwise, ConversionsAreExact) {
  std::vector<float> x = random_floats(1000, 15, 100.0f);
  for (uint32_t high = 0; high < 0x10000; high += 37)
    for (const uint32_t low : {0u, 1u, 0x7fffu, 0x8000u, 0x8001u, 0xffffu})
      x.push_back(std::bit_cast<float>(high << 16 | low));
  const int n = static_cast<int>(x.size());
  std::vector<bf16> narrow(n);
  fast().store(x.data(), n, ElementType::bf16, narrow.data());
  std::vector<float> wide(n), copy(n);
  fast().load(narrow.data(), ElementType::bf16, n, wide.data());
  for (int i = 0; i < n; ++i) {
    EXPECT_EQ(narrow[i].bits, to_bf16(x[i]).bits);
    EXPECT_EQ(std::bit_cast<uint32_t>(wide[i]) >> 16, narrow[i].bits);
  }
  fast().store(x.data(), n, ElementType::f32, copy.data());
  EXPECT_SAME_BITS(copy, x);
  fast().load(x.data(), ElementType::f32, n, copy.data());
  EXPECT_SAME_BITS(copy, x);
  for (const int some : kSizes) {
    std::vector<bf16> tail(some);
    fast().store(x.data(), some, ElementType::bf16, tail.data());
    std::vector<float> back(some);
    fast().load(tail.data(), ElementType::bf16, some, back.data());
    EXPECT_EQ(std::bit_cast<uint32_t>(back.back()) >> 16, to_bf16(x[some - 1]).bits);
  }
}

TEST_P(Elementwise, LogSumExpAgrees) {
  for (const int n : {1, 2, 15, 16, 17, 100, 5000, 128256}) {
    auto x = random_floats(n, 16, 4.0f);
    if (n > 20) x[3] = -kInf;
    for (const float offset : {0.0f, 500.0f, -500.0f}) {
      auto shifted = x;
      for (float& v : shifted) v += offset;
      float expected[2], got[2];
      reference().log_sum_exp(shifted.data(), n, &expected[0], &expected[1]);
      fast().log_sum_exp(shifted.data(), n, &got[0], &got[1]);
      EXPECT_NEAR(got[0], expected[0], 1e-5f * (1 + std::fabs(offset) / 100));
      EXPECT_NEAR(got[1], expected[1], 1e-5f * (1 + std::fabs(offset) / 100));
    }
  }
}

TEST_P(Elementwise, EntropyOfKnownDistributions) {
  const std::vector<float> uniform(50, -3.0f);
  float lse, expected_x;
  fast().log_sum_exp(uniform.data(), 50, &lse, &expected_x);
  EXPECT_NEAR(lse - expected_x, std::log(50.0f), 1e-6f);
  std::vector<float> certain(50, -kInf);
  certain[49] = 2.0f;
  fast().log_sum_exp(certain.data(), 50, &lse, &expected_x);
  EXPECT_EQ(lse, 2.0f);
  EXPECT_EQ(expected_x, 2.0f);
  certain[7] = kNan;
  fast().log_sum_exp(certain.data(), 50, &lse, &expected_x);
  EXPECT_TRUE(std::isnan(lse));
}

TEST_P(Elementwise, LargestOfReadsEverything) {
  for (const int count : {0, 128, 128 * 9}) {
    std::vector<int32_t> x(static_cast<size_t>(count), -7);
    EXPECT_EQ(fast().largest_of(x.data(), count), reference().largest_of(x.data(), count));
    for (int i = 0; i < count; i += 5) {
      x[i] = -1;
      EXPECT_EQ(fast().largest_of(x.data(), count), -1) << i;
      x[i] = -7;
    }
  }
}

}  // namespace
}  // namespace sol::kernels
