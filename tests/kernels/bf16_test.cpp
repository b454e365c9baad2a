#include <algorithm>
#include <array>
#include <cmath>
#include <functional>

#include "base/threads.h"
#include "guarded_copy.h"
#include "kernel_cases.h"
#include "kernels/compressed.h"
#include "kernels/int8_scales.h"
#include "kernels/matmul_bf16.h"

namespace sol::kernels {
namespace {

using test::GuardedCopy;
using test::random_floats;

struct Problem {
  Bf16Unit unit;
  int rows, in, out;
  Layout layout;
  WeightType type = WeightType::bf16;
};

std::string name(const testing::TestParamInfo<Problem>& info) {
  const Problem& p = info.param;
  return fmt::format("{}_{}_{}_{}x{}_{}", p.unit == Bf16Unit::tiles ? "tiles" : "vectors",
                     to_string(p.type), p.layout == Layout::in_major ? "in" : "out", p.in, p.out,
                     p.rows);
}

class Bf16Products : public testing::TestWithParam<Problem> {
 protected:
  void SetUp() override {
    if (!has_unit(p_.unit)) GTEST_SKIP() << "not on this machine";
    if (p_.type == WeightType::int8 && has_unit(Bf16Unit::tiles))
      GTEST_SKIP() << "tiles widen codes first";
    set_thread_count(1);
  }
  void TearDown() override { set_thread_count(threads_); }

  std::vector<float> run(int rows, std::span<const int> channels = {}) const {
    std::vector<float> y((rows - 1) * y_stride_ + p_.out, 0.25f);
    WeightView view = weights_.view;
    view.data = guarded_.data();
    if (p_.type == WeightType::int8)
      codes_matmul(x_.data(), p_.in + 1, rows, view, y.data(), y_stride_);
    else
      bf16_matmul(p_.unit, x_.data(), p_.in + 1, rows, view, channels, y.data(), y_stride_);
    return y;
  }

  bool by_output() const { return p_.layout == Layout::out_major; }

  // Row i as numbers, int8 codes without their scale, which is `scale` then and else 1.
  std::vector<float> row(int i, float& scale) const {
    const int columns = by_output() ? p_.in : p_.out;
    std::vector<float> numbers(static_cast<size_t>(columns));
    WeightView view = weights_.view;
    view.data = weights_.bytes.data();
    kernels_for(Isa::reference)
        .widen_summands(view, i, 0, columns, ElementType::f32, numbers.data());
    scale = 1;
    if (p_.type != WeightType::int8) return numbers;
    std::vector<float> scales;
    int8_scales(view, std::array{i}, scales);
    scale = scales[0];
    return numbers;
  }

  // What the outputs of each row are near, [rows][out]: sums over the channels that count.
  // Channels' scales multiply inputs before these are rounded, outputs' scales the sums.
  std::vector<double> truth(const std::function<bool(int)>& counts) const {
    std::vector<double> y(static_cast<size_t>(p_.rows * p_.out));
    const int weight_rows = by_output() ? p_.out : p_.in;
    for (int i = 0; i < weight_rows; ++i) {
      float scale = 1;
      const auto numbers = row(i, scale);
      for (int r = 0; r < p_.rows; ++r) {
        const float* x = &x_[r * (p_.in + 1)];
        double* of_row = &y[r * p_.out];
        if (by_output()) {
          for (int k = 0; k < p_.in; ++k)
            if (counts(k)) of_row[i] += double{to_float(to_bf16(x[k]))} * numbers[k] * scale;
        } else if (counts(i)) {
          for (int o = 0; o < p_.out; ++o)
            of_row[o] += double{to_float(to_bf16(x[i] * scale))} * numbers[o];
        }
      }
    }
    return y;
  }

  const Problem p_ = GetParam();
  const int64_t y_stride_ = p_.out + 3;
  const std::vector<float> x_ = random_floats(p_.rows * (p_.in + 1), 1);
  const test::StoredMatrix weights_ =
      test::stored_matrix(random_floats(static_cast<size_t>(p_.in) * p_.out, 2, 0.1f), p_.type,
                          p_.layout, p_.in, p_.out, 2);
  const GuardedCopy guarded_{weights_.bytes};
  const int threads_ = thread_count();
  // Sums of numbers of size 0.06, in float32.
  const double error_ = 2e-5 * std::max(1.0, std::sqrt(p_.in / 256.0));
};

TEST_P(Bf16Products, SumsProductsOfRoundedNumbers) {
  const auto y = run(p_.rows);
  const auto expected = truth([](int) { return true; });
  for (int r = 0; r < p_.rows; ++r) {
    for (int o = 0; o < p_.out; ++o)
      ASSERT_NEAR(y[r * y_stride_ + o], expected[r * p_.out + o], error_)
          << "row " << r << " output " << o;
    for (int gap = 0; gap < 3 && r + 1 < p_.rows; ++gap)
      ASSERT_EQ(y[r * y_stride_ + p_.out + gap], 0.25f);
  }
}

TEST_P(Bf16Products, DependsNeitherOnThreadsNorOnOtherRows) {
  const auto y = run(p_.rows);
  set_thread_count(3);
  EXPECT_SAME_BITS(run(p_.rows), y);
  // Few rows of out_major weights are summed by vectors in another order.
  const bool many = p_.unit == Bf16Unit::vectors && p_.layout == Layout::out_major && p_.rows > 16;
  const int fewest = p_.type == WeightType::int8 ? 5 : 3;
  const auto first = run(many ? 17 : std::min(fewest, p_.rows));
  EXPECT_SAME_BITS(first,
                   std::vector<float>(y.begin(), y.begin() + static_cast<ptrdiff_t>(first.size())));
}

class Bf16Kept : public Bf16Products {};

TEST_P(Bf16Kept, ListedChannelsAloneCountAndAreRead) {
  std::vector<int> channels;
  for (int i = 0; i < p_.in; ++i)
    if (i % 3 != 1) channels.push_back(i);
  // What is read of the others would make every sum NaN.
  for (int i = 1; i < p_.in; i += 3)
    std::memset(guarded_.data() + i * weights_.view.stride * sizeof(bf16), 0xff,
                p_.out * sizeof(bf16));
  const auto y = run(p_.rows, channels);
  const auto expected = truth([](int i) { return i % 3 != 1; });
  for (int r = 0; r < p_.rows; ++r)
    for (int o = 0; o < p_.out; ++o)
      ASSERT_NEAR(y[r * y_stride_ + o], expected[r * p_.out + o], error_)
          << "row " << r << " output " << o;
}

// Sizes on both sides of what one block, panel or piece of the weights holds.
std::vector<Problem> problems(Layout layout) {
  const bool by_output = layout == Layout::out_major;
  std::vector<Problem> all;
  for (const Bf16Unit unit : {Bf16Unit::tiles, Bf16Unit::vectors}) {
    all.push_back({unit, 3, 32, 32, layout});
    all.push_back({unit, 16, 256, 200, layout});
    all.push_back({unit, 17, by_output ? 100 : 101, 37, layout});
    all.push_back({unit, 32, 65, by_output ? 81 : 2100, layout});
    all.push_back({unit, 5, 1, 1, layout});
  }
  for (const int rows : {1, 2, 4, 5, 6, 7, 8, 9, 15})
    all.push_back({Bf16Unit::vectors, rows, 45, 130, layout});
  all.push_back({Bf16Unit::vectors, 8, 1033, 1100, layout});
  all.push_back({Bf16Unit::vectors, 18, 1033, 130, layout});
  all.push_back({Bf16Unit::vectors, 100, 256, 320, layout});
  all.push_back({Bf16Unit::vectors, 200, 66, 40, layout});  // more than threads share outputs of
  all.push_back({Bf16Unit::vectors, 20, 1600, 70, layout});
  return all;
}
std::vector<Problem> problems_of_codes(Layout layout) {
  const auto problem = [&](int rows, int in, int out) {
    return Problem{Bf16Unit::vectors, rows, in, out, layout, WeightType::int8};
  };
  std::vector<Problem> all{problem(16, 1033, 1100), problem(7, 512, 576), problem(5, 1, 1),
                           problem(6, 33, 65)};
  for (int rows = 5; rows <= 16; ++rows) all.push_back(problem(rows, 77, 130));
  return all;
}
const auto kByOutput = problems(Layout::out_major), kByChannel = problems(Layout::in_major);
INSTANTIATE_TEST_SUITE_P(ByOutput, Bf16Products, testing::ValuesIn(kByOutput), name);
INSTANTIATE_TEST_SUITE_P(ByChannel, Bf16Products, testing::ValuesIn(kByChannel), name);
INSTANTIATE_TEST_SUITE_P(CodesByOutput, Bf16Products,
                         testing::ValuesIn(problems_of_codes(Layout::out_major)), name);
INSTANTIATE_TEST_SUITE_P(CodesByChannel, Bf16Products,
                         testing::ValuesIn(problems_of_codes(Layout::in_major)), name);
INSTANTIATE_TEST_SUITE_P(ByChannel, Bf16Kept, testing::ValuesIn(kByChannel), name);

// Each code at every place: once in each row and column.
TEST(Bf16Codes, EveryCodeIsExact) {
  constexpr int kRows = 5;
  if (!vectors_multiply_codes(kRows)) GTEST_SKIP() << "no AVX512-BF16 here, or tiles besides";
  constexpr int kCodes = 255;
  for (const Layout layout : {Layout::out_major, Layout::in_major}) {
    std::vector<float> weights(kCodes * kCodes);
    for (int i = 0; i < kCodes; ++i)
      for (int o = 0; o < kCodes; ++o)
        weights[static_cast<size_t>(i * kCodes + o)] = static_cast<float>((i + o) % kCodes - 127);
    const auto w = test::stored_matrix(weights, WeightType::int8, layout, kCodes, kCodes);
    std::vector<float> x(kRows * kCodes), y(kRows * kCodes);
    for (int i = 0; i < kCodes; ++i) {
      std::ranges::fill(x, 0.0f);
      x[i] = 1;
      x[4 * kCodes + i] = -0.5f;
      codes_matmul(x.data(), kCodes, kRows, w.view, y.data(), kCodes);
      for (int o = 0; o < kCodes; ++o) {
        const float code = static_cast<float>((i + o) % kCodes - 127);
        ASSERT_EQ(y[o], code) << i << " " << o;
        ASSERT_EQ(y[4 * kCodes + o], -0.5f * code) << i << " " << o;
      }
    }
  }
}

TEST(Bf16Unit, WhatIsFastestForSoManyRows) {
  const bool tiles = has_unit(Bf16Unit::tiles), vectors = has_unit(Bf16Unit::vectors);
  EXPECT_EQ(fastest_unit(1), std::nullopt);
  for (const int rows : {3, 32, 33, 500}) {
    const auto expected = tiles && rows <= 32 ? std::optional(Bf16Unit::tiles)
                          : vectors && !tiles ? std::optional(Bf16Unit::vectors)
                                              : std::nullopt;
    EXPECT_EQ(fastest_unit(rows), expected) << rows;
  }
  const Isa best = current_isa();
  for (const Isa isa : supported_isas()) {
    force_isa(isa);
    const bool any = tiles ? has_avx512(isa) : vectors && isa == Isa::avx512_vnni;
    EXPECT_EQ(fastest_unit(8).has_value(), any) << to_string(isa);
    EXPECT_EQ(vectors_multiply_codes(8), any && !tiles) << to_string(isa);
    for (const int rows : {4, 17}) EXPECT_FALSE(vectors_multiply_codes(rows)) << rows;
  }
  force_isa(best);
}

}  // namespace
}  // namespace sol::kernels
