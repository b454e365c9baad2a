// Products of int8 weights with rows of codes.
#include "base/threads.h"
#include "kernel_cases.h"
#include "kernels/matmul.h"
#include "kernels/matmul_dnnl.h"

namespace sol::kernels {
namespace {

using test::random_floats;

class Integer : public test::EachIsa {
 protected:
  void SetUp() override {
    before_ = current_isa();
    force_isa(GetParam());
  }
  void TearDown() override { force_isa(before_); }

 private:
  Isa before_{};
};
SOL_FOR_EACH_ISA(Integer);

struct Case {
  int in, out, extra_stride;
};
const Case kCases[] = {{1, 1, 0},     {3, 17, 2},   {31, 9, 0},    {32, 32, 0},
                       {64, 65, 3},   {130, 63, 0}, {257, 33, 1},  {300, 130, 0},
                       {40, 9000, 0}, {5000, 9, 0}, {40, 17000, 0}};

test::StoredMatrix random_weights(const Case& c, Layout layout, uint32_t seed) {
  return test::stored_matrix(random_floats(static_cast<size_t>(c.in) * c.out, seed, 0.1f),
                             WeightType::int8, layout, c.in, c.out, c.extra_stride);
}

// Random codes, both ends among them, padded as the kernels want them.
std::vector<int8_t> random_codes(int rows, int n, int64_t stride, uint32_t seed) {
  std::mt19937 generator(seed);
  std::uniform_int_distribution<int> code(-kLargestInt8, kLargestInt8);
  std::vector<int8_t> x(static_cast<size_t>(rows * stride), 0);
  for (int r = 0; r < rows; ++r)
    for (int i = 0; i < n; ++i) x[r * stride + i] = static_cast<int8_t>(code(generator));
  return x;
}

int64_t padded(int n) {
  return (int64_t{n} + kCodeGroup - 1) / kCodeGroup * kCodeGroup;
}

TEST_P(Integer, RowsOfCodesAreTheReferences) {
  for (const int n : {1, 15, 16, 17, 100, 1000}) {
    for (const float scale : {1.0f, 1e-3f, 1e-37f, 1e-42f, 1e35f, 0.0f}) {
      const auto x = random_floats(n, n, scale);
      std::vector<int8_t> expected(n, 3), got(n, 4);
      float expected_scale = -1, got_scale = -2;
      reference().quantise_row(x.data(), n, expected.data(), &expected_scale);
      fast().quantise_row(x.data(), n, got.data(), &got_scale);
      EXPECT_EQ(got, expected) << n << " " << scale;
      EXPECT_EQ(got_scale, expected_scale);
    }
  }
}

TEST_P(Integer, CodesAreWithinHalfAStepOfTheNumbers) {
  const int n = 333;
  auto x = random_floats(n, 3);
  x[17] = -8.0f;
  std::vector<int8_t> codes(n);
  float scale = 0;
  fast().quantise_row(x.data(), n, codes.data(), &scale);
  EXPECT_EQ(scale, 8.0f / 127);
  EXPECT_EQ(codes[17], -127);
  for (int i = 0; i < n; ++i) EXPECT_LE(std::fabs(x[i] - scale * codes[i]), 0.5001f * scale);
}

TEST_P(Integer, WhatIsNotFiniteIsNotHidden) {
  for (const float bad : {NAN, INFINITY, -INFINITY}) {
    std::vector<float> x(40, 1.0f);
    x[35] = bad;
    std::vector<int8_t> codes(40, 1);
    float scale = 0;
    fast().quantise_row(x.data(), 40, codes.data(), &scale);
    EXPECT_TRUE(std::isnan(scale));
    EXPECT_THAT(codes, testing::Each(0));
  }
}

TEST_P(Integer, OutMajorAgreesBitForBit) {
  for (const Case& c : kCases) {
    if (c.out > 9000) continue;
    for (const int rows : {1, 2, 3, 4, 7}) {
      if (c.out > 1000 && rows > 1) continue;
      const test::StoredMatrix w = random_weights(c, Layout::out_major, 2);
      const int64_t stride = padded(c.in), y_stride = c.out + 2;
      const auto x = random_codes(rows, c.in, stride, 3);
      const auto scales = random_floats(rows, 4);
      std::vector<float> expected(rows * y_stride, 7.0f), got = expected;
      const int begin = c.out > 20 ? 13 : 0;
      reference().integer_out_major(w.view, x.data(), stride, scales.data(), rows, begin, c.out,
                                    expected.data(), y_stride);
      fast().integer_out_major(w.view, x.data(), stride, scales.data(), rows, begin, c.out,
                               got.data(), y_stride);
      EXPECT_SAME_BITS(got, expected);
    }
  }
}

TEST_P(Integer, InMajorAgreesBitForBitWithAndWithoutAList) {
  for (const Case& c : kCases) {
    for (const int rows : {1, 2, 3, 4, 7}) {
      if (c.out > 1000 && rows > 2) continue;
      const test::StoredMatrix w = random_weights(c, Layout::in_major, 5);
      std::vector<int> kept;
      for (int i = 0; i < c.in; ++i)
        if (i % 3 == 0 || i % 7 == 2) kept.push_back(i);
      for (const bool listed : {false, true}) {
        const int n = listed ? static_cast<int>(kept.size()) : c.in;
        const int* channels = listed ? kept.data() : nullptr;
        const int64_t stride = padded(n), y_stride = c.out + 2;
        const auto x = random_codes(rows, n, stride, 6);
        const auto scales = random_floats(rows, 7);
        std::vector<float> expected(rows * y_stride, 7.0f), got = expected;
        const int begin = c.out > 2 * kCodeGroup ? kCodeGroup : 0;
        reference().integer_in_major(w.view, x.data(), stride, scales.data(), rows, channels, n,
                                     begin, c.out, expected.data(), y_stride);
        fast().integer_in_major(w.view, x.data(), stride, scales.data(), rows, channels, n, begin,
                                c.out, got.data(), y_stride);
        EXPECT_SAME_BITS(got, expected);
      }
    }
  }
}

TEST_P(Integer, NoChannelsGiveZero) {
  const test::StoredMatrix w = random_weights({4, 50, 0}, Layout::in_major, 8);
  const std::vector<int8_t> x(kCodeGroup, 0);
  const int none = 0;
  const float scale = 1;
  std::vector<float> y(50, 2.0f);
  fast().integer_in_major(w.view, x.data(), kCodeGroup, &scale, 1, &none, 0, 0, 50, y.data(), 50);
  EXPECT_THAT(y, testing::Each(0.0f));
}

// The largest sums that weights and activations can give.
TEST_P(Integer, SumsDoNotOverflow) {
  const int in = kMostIntegerInputs, out = 2;
  const std::vector<float> ones(static_cast<size_t>(in) * out, -1.0f);
  const std::vector<int8_t> x(static_cast<size_t>(in), 127);
  const float scale = 1;
  for (const Layout layout : {Layout::out_major, Layout::in_major}) {
    const auto w = test::stored_matrix(ones, WeightType::int8, layout, in, out);
    std::vector<float> y(out);
    const auto product = [&] {
      if (layout == Layout::out_major)
        fast().integer_out_major(w.view, x.data(), in, &scale, 1, 0, out, y.data(), out);
      else
        fast().integer_in_major(w.view, x.data(), in, &scale, 1, nullptr, in, 0, out, y.data(),
                                out);
    };
    product();
    const float row_scale = layout == Layout::out_major ? to_float(to_bf16(1.0f / 127)) : 1.0f;
    EXPECT_EQ(y[0], -static_cast<float>(int64_t{127} * 127 * in) * row_scale);
    EXPECT_EQ(y[1], y[0]);
  }
}

struct Problem {
  int rows, in, out;
  Layout layout;
  std::vector<float> x;
  test::StoredMatrix w;
  Problem(int r, int i, int o, Layout l)
      : rows(r),
        in(i),
        out(o),
        layout(l),
        x(random_floats(static_cast<size_t>(r) * i, 21)),
        w(random_weights({i, o, 1}, l, 22)) {}

  std::vector<float> run(MatmulMode mode, std::span<const int> channels = {}) const {
    std::vector<float> y(static_cast<size_t>(rows) * out, 0.5f);
    integer_matmul(x.data(), in, rows, w.view, channels, y.data(), out, mode);
    return y;
  }
};

TEST_P(Integer, TheLibraryGivesTheSameBits) {
  for (const Layout layout : {Layout::out_major, Layout::in_major}) {
    for (const auto& [in, out] : {std::pair{64, 96}, {300, 130}, {1000, 77}}) {
      const Problem p(33, in, out, layout);
      EXPECT_SAME_BITS(p.run(MatmulMode::library), p.run(MatmulMode::own));
    }
  }
}

TEST_P(Integer, RowsAndThreadsChangeNoBit) {
  const int threads = thread_count();
  for (const Layout layout : {Layout::out_major, Layout::in_major}) {
    const Problem p(20, 256, 300, layout);
    set_thread_count(3);
    const auto together = p.run(MatmulMode::library);
    set_thread_count(1);
    for (int r = 0; r < p.rows; ++r) {
      Problem one(1, p.in, p.out, layout);
      std::copy_n(p.x.begin() + static_cast<long>(r) * p.in, p.in, one.x.begin());
      const auto alone = one.run(MatmulMode::library);
      EXPECT_SAME_BITS(alone,
                       std::vector<float>(together.begin() + static_cast<long>(r) * p.out,
                                          together.begin() + static_cast<long>(r + 1) * p.out));
    }
  }
  set_thread_count(threads);
}

TEST_P(Integer, IsCloseToTheProductOfTheNumbers) {
  for (const Layout layout : {Layout::out_major, Layout::in_major}) {
    const Problem p(2, 512, 64, layout);
    std::vector<float> exact(static_cast<size_t>(p.rows) * p.out);
    matmul(p.x.data(), p.in, p.rows, p.w.view, exact.data(), p.out, MatmulMode::own);
    const auto y = p.run(MatmulMode::own);
    double error = 0, total = 0;
    for (size_t i = 0; i < y.size(); ++i) {
      error += (y[i] - exact[i]) * (y[i] - exact[i]);
      total += exact[i] * exact[i];
    }
    EXPECT_LT(error / total, 3e-4);  // steps of a 127th of three standard deviations
    EXPECT_GT(error, 0);
  }
}

TEST_P(Integer, ListedChannelsEqualTheOthersBeingZero) {
  Problem p(3, 100, 90, Layout::in_major);
  std::vector<int> kept;
  auto zeroed = p;
  for (int i = 0; i < p.in; ++i) {
    if (i % 5 < 2)
      kept.push_back(i);
    else
      for (int r = 0; r < p.rows; ++r) zeroed.x[r * p.in + i] = 0;
  }
  // `zeroed` moved its weights' memory; it uses its own copy.
  zeroed.w = random_weights({p.in, p.out, 1}, Layout::in_major, 22);
  EXPECT_SAME_BITS(p.run(MatmulMode::own, kept), zeroed.run(MatmulMode::own));
}

}  // namespace
}  // namespace sol::kernels
