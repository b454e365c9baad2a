#include <functional>

#include "base/threads.h"
#include "guarded_copy.h"
#include "kernel_cases.h"
#include "kernels/amx_bf16/products.h"
#include "kernels/matmul_amx.h"

namespace sol::kernels {
namespace {

using test::GuardedCopy;
using test::random_floats;

struct Problem {
  int rows, in, out;
  Layout layout;
};

std::string name(const testing::TestParamInfo<Problem>& info) {
  const Problem& p = info.param;
  return fmt::format("{}_{}x{}_{}", p.layout == Layout::in_major ? "in" : "out", p.in, p.out,
                     p.rows);
}

class Amx : public testing::TestWithParam<Problem> {
 protected:
  void SetUp() override {
    if (!amx_multiplies()) GTEST_SKIP() << "no AMX here";
    set_thread_count(1);
  }
  void TearDown() override { set_thread_count(threads_); }

  std::vector<float> run(int rows, std::span<const int> channels = {}) const {
    std::vector<float> y((rows - 1) * y_stride_ + p_.out, 0.25f);
    WeightView view = weights_.view;
    view.data = guarded_.data();
    EXPECT_TRUE(amx_matmul(x_.data(), p_.in + 1, rows, view, channels, y.data(), y_stride_));
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
};

TEST_P(Amx, SumsProductsOfRoundedNumbers) {
  const auto y = run(p_.rows);
  for (int r = 0; r < p_.rows; ++r) {
    for (int o = 0; o < p_.out; ++o)
      ASSERT_NEAR(y[r * y_stride_ + o], truth(r, o, [](int) { return true; }), 2e-5)
          << "row " << r << " output " << o;
    for (int gap = 0; gap < 3 && r + 1 < p_.rows; ++gap)
      ASSERT_EQ(y[r * y_stride_ + p_.out + gap], 0.25f);
  }
}

TEST_P(Amx, DependsNeitherOnThreadsNorOnOtherRows) {
  const auto y = run(p_.rows);
  set_thread_count(3);
  EXPECT_SAME_BITS(run(p_.rows), y);
  const auto first = run(3);
  EXPECT_SAME_BITS(first,
                   std::vector<float>(y.begin(), y.begin() + static_cast<ptrdiff_t>(first.size())));
}

class AmxKept : public Amx {};

TEST_P(AmxKept, ListedChannelsAloneCountAndAreRead) {
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
      ASSERT_NEAR(y[r * y_stride_ + o], truth(r, o, [](int i) { return i % 3 != 1; }), 2e-5)
          << "row " << r << " output " << o;
}

constexpr Problem kByOutput[] = {{3, 32, 32, Layout::out_major},
                                 {16, 256, 200, Layout::out_major},
                                 {17, 100, 37, Layout::out_major},
                                 {32, 65, 81, Layout::out_major},
                                 {5, 1, 1, Layout::out_major}};
constexpr Problem kByChannel[] = {{3, 32, 32, Layout::in_major},
                                  {16, 256, 200, Layout::in_major},
                                  {17, 101, 37, Layout::in_major},
                                  {32, 65, 2100, Layout::in_major},
                                  {5, 1, 1, Layout::in_major}};
INSTANTIATE_TEST_SUITE_P(ByOutput, Amx, testing::ValuesIn(kByOutput), name);
INSTANTIATE_TEST_SUITE_P(ByChannel, Amx, testing::ValuesIn(kByChannel), name);
INSTANTIATE_TEST_SUITE_P(ByChannel, AmxKept, testing::ValuesIn(kByChannel), name);

TEST(AmxRange, OtherRowsAndTypesAreLeftToOthers) {
  if (!amx_multiplies()) GTEST_SKIP() << "no AMX here";
  const auto x = random_floats(40 * 32, 1);
  std::vector<float> y(40 * 32);
  for (const WeightType type : test::kWeightTypes) {
    const auto w = test::stored_matrix(random_floats(32 * 32, 2), type, Layout::out_major, 32, 32);
    for (const int rows : {1, 4, 32, 33})
      EXPECT_EQ(amx_matmul(x.data(), 32, rows, w.view, {}, y.data(), 32),
                type == WeightType::bf16 && (rows == 4 || rows == 32))
          << to_string(type) << " " << rows;
  }
}

}  // namespace
}  // namespace sol::kernels
