#include "kernels/compressed.h"

#include "kernel_cases.h"

namespace sol::kernels {
namespace {

using test::random_floats;

class Compressed : public test::EachIsa {};
SOL_FOR_EACH_ISA(Compressed);

constexpr WeightType kCompressed[] = {WeightType::int8, WeightType::int4};
const int kLengths[] = {1, 15, 16, 17, 31, 32, 33, 48, 49, 64, 100, 1000, 5000};

std::vector<std::byte> compressed(const Kernels& k, const std::vector<float>& x, WeightType type) {
  const int n = static_cast<int>(x.size());
  std::vector<std::byte> row(static_cast<size_t>(row_bytes(type, n)), std::byte{0x5a});
  k.compress_row(x.data(), n, type, row.data());
  return row;
}

WeightView row_view(const std::vector<std::byte>& row, WeightType type, int n) {
  return {row.data(), type, Layout::out_major, n, 1, row_bytes(type, n)};
}

std::vector<float> widened(const Kernels& k, const std::vector<std::byte>& row, WeightType type,
                           int n) {
  std::vector<float> y(static_cast<size_t>(n));
  k.widen_row(row_view(row, type, n), 0, 0, n, ElementType::f32, y.data());
  return y;
}

double relative_error(const std::vector<float>& x, const std::vector<float>& y) {
  double error = 0, total = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    error += (x[i] - y[i]) * (x[i] - y[i]);
    total += x[i] * x[i];
  }
  return error / total;
}

TEST_P(Compressed, RowsAreTheReferencesByteForByte) {
  for (const WeightType type : kCompressed)
    for (const int n : kLengths)
      for (const float scale : {1.0f, 1e-3f, 1e-30f, 1e-42f, 1e30f, 0.0f}) {
        const auto x = random_floats(n, n, scale);
        EXPECT_EQ(compressed(fast(), x, type), compressed(reference(), x, type))
            << n << " " << scale;
      }
}

TEST_P(Compressed, WideningAgreesBitForBit) {
  for (const WeightType type : kCompressed)
    for (const int n : kLengths) {
      const auto row = compressed(reference(), random_floats(n, 3), type);
      EXPECT_SAME_BITS(widened(fast(), row, type, n), widened(reference(), row, type, n));
      const WeightView view = row_view(row, type, n);
      for (const auto widen : {&Kernels::widen_row, &Kernels::widen_summands}) {
        std::vector<bf16> narrow(n), expected(n);
        (fast().*widen)(view, 0, 0, n, ElementType::bf16, narrow.data());
        (reference().*widen)(view, 0, 0, n, ElementType::bf16, expected.data());
        EXPECT_EQ(std::memcmp(narrow.data(), expected.data(), n * sizeof(bf16)), 0) << n;
      }
    }
}

// Products sum int8's codes, which bf16 holds exactly, and int4's weights.
TEST_P(Compressed, SummandsAreCodesOrWeights) {
  const int n = 100;
  const auto x = random_floats(n, 9);
  for (const WeightType type : kCompressed) {
    const auto row = compressed(fast(), x, type);
    const auto weights = widened(fast(), row, type, n);
    std::vector<float> summands(n);
    fast().widen_summands(row_view(row, type, n), 0, 0, n, ElementType::f32, summands.data());
    if (type == WeightType::int4) {
      EXPECT_SAME_BITS(summands, weights);
      continue;
    }
    float scale = 0;
    std::memcpy(reinterpret_cast<std::byte*>(&scale) + 2, row.data() + code_bytes(type, n), 2);
    for (int i = 0; i < n; ++i) {
      EXPECT_EQ(summands[i], static_cast<float>(static_cast<int8_t>(row[i])));
      EXPECT_EQ(summands[i] * scale, weights[i]);
    }
  }
}

TEST_P(Compressed, PartsOfARowAreThePartsOfTheWhole) {
  const int n = 200;
  for (const WeightType type : kCompressed) {
    const auto row = compressed(fast(), random_floats(n, 4), type);
    const auto whole = widened(fast(), row, type, n);
    std::vector<float> part(71);
    fast().widen_row(row_view(row, type, n), 0, 96, 96 + 71, ElementType::f32, part.data());
    EXPECT_SAME_BITS(part, std::vector<float>(whole.begin() + 96, whole.begin() + 96 + 71));
  }
}

TEST_P(Compressed, ErrorsAreThoseOfTheFormat) {
  const auto x = random_floats(4096, 5);
  const int n = static_cast<int>(x.size());
  EXPECT_LT(relative_error(
                x, widened(fast(), compressed(fast(), x, WeightType::int8), WeightType::int8, n)),
            1e-4);
  EXPECT_LT(relative_error(
                x, widened(fast(), compressed(fast(), x, WeightType::int4), WeightType::int4, n)),
            6e-3);
}

// Of normally distributed weights, what evenly spaced values of the same size lose.
TEST_P(Compressed, UnevenValuesBeatEvenOnes) {
  const auto x = random_floats(1 << 14, 6);
  const int n = static_cast<int>(x.size());
  std::vector<float> even(x.size());
  for (size_t begin = 0; begin < x.size(); begin += kCodeGroup) {
    double best = INFINITY;
    const auto group = std::vector<float>(x.begin() + begin, x.begin() + begin + kCodeGroup);
    for (int step = -400; step <= 400; ++step) {
      const float scale = static_cast<float>(step) / 800;
      if (step == 0) continue;
      std::vector<float> y;
      double error = 0;
      for (const float v : group) {
        y.push_back(std::clamp(std::nearbyint(v / scale), -8.0f, 7.0f) * scale);
        error += (v - y.back()) * (v - y.back());
      }
      if (error >= best) continue;
      best = error;
      std::copy(y.begin(), y.end(), even.begin() + begin);
    }
  }
  const auto row = compressed(fast(), x, WeightType::int4);
  EXPECT_LT(relative_error(x, widened(fast(), row, WeightType::int4, n)),
            0.9 * relative_error(x, even));
}

// Also where the squares of weights are beyond float32.
TEST_P(Compressed, CodesDoNotDependOnTheUnitOfTheWeights) {
  const int n = 100;
  const auto x = random_floats(n, 8);
  for (const WeightType type : kCompressed) {
    const auto y = widened(fast(), compressed(fast(), x, type), type, n);
    for (const int exponent : {-80, -30, 55, 70, 120}) {
      const float unit = std::ldexp(1.0f, exponent);
      const auto times_unit = [&](std::vector<float> values) {
        for (float& v : values) v *= unit;
        return values;
      };
      EXPECT_SAME_BITS(widened(fast(), compressed(fast(), times_unit(x), type), type, n),
                       times_unit(y));
    }
  }
}

TEST_P(Compressed, EndsOfTheCodesAreReached) {
  for (const WeightType type : kCompressed) {
    std::vector<float> x(64, 0.0f);
    x[3] = -5.0f;
    x[40] = 7.0f;
    const auto y = widened(fast(), compressed(fast(), x, type), type, 64);
    EXPECT_NEAR(y[3], -5.0f, 0.05f);
    EXPECT_NEAR(y[40], 7.0f, 0.06f);
  }
}

TEST_P(Compressed, ZeroRowsStayZero) {
  for (const WeightType type : kCompressed) {
    const std::vector<float> x(77, 0.0f);
    const auto y = widened(fast(), compressed(fast(), x, type), type, 77);
    EXPECT_THAT(y, testing::Each(0.0f));
  }
}

TEST(CompressedRows, SizesAreAsDocumented) {
  EXPECT_EQ(row_bytes(WeightType::f32, 100), 400);
  EXPECT_EQ(row_bytes(WeightType::bf16, 100), 200);
  EXPECT_EQ(row_bytes(WeightType::int8, 2048), 2064);  // 2048 + 2, in units of 16
  EXPECT_EQ(row_bytes(WeightType::int8, 33), 80);      // 64 + 2
  EXPECT_EQ(row_bytes(WeightType::int4, 2048), 1152);  // 1024 + 128
  EXPECT_EQ(row_bytes(WeightType::int4, 33), 48);      // 32 + 4
  const WeightView w{nullptr, WeightType::int4, Layout::in_major, 10, 2048, 1152};
  EXPECT_EQ(matrix_bytes(w), 11520);
}

TEST(CompressedRows, BadScalesAreFound) {
  const Kernels& k = kernels_for(Isa::reference);
  for (const WeightType type : kCompressed) {
    auto row = compressed(k, random_floats(100, 7), type);
    EXPECT_EQ(first_bad_scale(row.data(), type, 100), -1);
    const int which = type == WeightType::int8 ? 0 : 2;
    // Infinity, -2^121 and the number before 2^121.
    for (const auto& [bits, found] :
         {std::pair<uint16_t, int>{0x7f80, which}, {0xfc00, which}, {0x7bff, -1}}) {
      std::memcpy(row.data() + code_bytes(type, 100) + 2 * which, &bits, sizeof(bits));
      EXPECT_EQ(first_bad_scale(row.data(), type, 100), found) << bits;
    }
  }
}

// Every 4-bit code stands for something, and nothing behind the last code does.
TEST(CompressedRows, BadCodesAreFound) {
  const int n = 99;
  auto row = compressed(kernels_for(Isa::reference), random_floats(n, 7), WeightType::int8);
  row[n] = std::byte{0x80};
  EXPECT_EQ(first_bad_code(row.data(), WeightType::int8, n), -1);
  row[n - 1] = std::byte{0x80};
  EXPECT_EQ(first_bad_code(row.data(), WeightType::int8, n), n - 1);
  EXPECT_EQ(first_bad_code(row.data(), WeightType::int4, n), -1);
}

}  // namespace
}  // namespace sol::kernels
