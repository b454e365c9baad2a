#include <algorithm>
#include <cmath>
#include <functional>

#include "base/threads.h"
#include "guarded_copy.h"
#include "kernel_cases.h"
#include "kernels/matmul_bf16.h"

namespace sol::kernels {
namespace {

using test::GuardedCopy;
using test::random_floats;

struct Problem {
  Bf16Unit unit;
  int rows, in, out;
  Layout layout;
};

std::string name(const testing::TestParamInfo<Problem>& info) {
  const Problem& p = info.param;
  return fmt::format("{}_{}_{}x{}_{}", p.unit == Bf16Unit::tiles ? "tiles" : "vectors",
                     p.layout == Layout::in_major ? "in" : "out", p.in, p.out, p.rows);
}

class Bf16Products : public testing::TestWithParam<Problem> {
 protected:
  void SetUp() override {
    if (!has_unit(p_.unit)) GTEST_SKIP() << "not on this machine";
    set_thread_count(1);
  }
  void TearDown() override { set_thread_count(threads_); }

  std::vector<float> run(int rows, std::span<const int> channels = {}) const {
    std::vector<float> y((rows - 1) * y_stride_ + p_.out, 0.25f);
    WeightView view = weights_.view;
    view.data = guarded_.data();
    bf16_matmul(p_.unit, x_.data(), p_.in + 1, rows, view, channels, y.data(), y_stride_);
    return y;
  }

  // What output o of row r is near: the sum over the channels that count.
  double truth(int r, int o, const std::function<bool(int)>& counts) const {
    const auto* w = reinterpret_cast<const bf16*>(weights_.bytes.data());
    const int64_t stride = weights_.view.stride;
    double sum = 0;
    for (int i = 0; i < p_.in; ++i)
      if (counts(i))
        sum += static_cast<double>(to_float(to_bf16(x_[r * (p_.in + 1) + i]))) *
               to_float(w[p_.layout == Layout::out_major ? o * stride + i : i * stride + o]);
    return sum;
  }

  const Problem p_ = GetParam();
  const int64_t y_stride_ = p_.out + 3;
  const std::vector<float> x_ = random_floats(p_.rows * (p_.in + 1), 1);
  const test::StoredMatrix weights_ =
      test::stored_matrix(random_floats(static_cast<size_t>(p_.in) * p_.out, 2, 0.1f),
                          WeightType::bf16, p_.layout, p_.in, p_.out, 2);
  const GuardedCopy guarded_{weights_.bytes};
  const int threads_ = thread_count();
  // Sums of numbers of size 0.06, in float32.
  const double error_ = 2e-5 * std::max(1.0, std::sqrt(p_.in / 256.0));
};

TEST_P(Bf16Products, SumsProductsOfRoundedNumbers) {
  const auto y = run(p_.rows);
  for (int r = 0; r < p_.rows; ++r) {
    for (int o = 0; o < p_.out; ++o)
      ASSERT_NEAR(y[r * y_stride_ + o], truth(r, o, [](int) { return true; }), error_)
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
  const auto first = run(many ? 17 : std::min(3, p_.rows));
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
  for (int r = 0; r < p_.rows; ++r)
    for (int o = 0; o < p_.out; ++o)
      ASSERT_NEAR(y[r * y_stride_ + o], truth(r, o, [](int i) { return i % 3 != 1; }), error_)
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
const auto kByOutput = problems(Layout::out_major), kByChannel = problems(Layout::in_major);
INSTANTIATE_TEST_SUITE_P(ByOutput, Bf16Products, testing::ValuesIn(kByOutput), name);
INSTANTIATE_TEST_SUITE_P(ByChannel, Bf16Products, testing::ValuesIn(kByChannel), name);
INSTANTIATE_TEST_SUITE_P(ByChannel, Bf16Kept, testing::ValuesIn(kByChannel), name);

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
    EXPECT_EQ(fastest_unit(8).has_value(), has_avx512(isa) && (tiles || vectors));
  }
  force_isa(best);
}

}  // namespace
}  // namespace sol::kernels
