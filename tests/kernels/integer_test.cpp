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
  return code_bytes(WeightType::int8, n);
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
      if (c.out > 9000 && rows > 2) continue;
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
        // Part of the outputs too: what lies beside them stays.
        const bool part = c.out > 3 * kCodeGroup;
        const int begin = part ? kCodeGroup : 0,
                  end = part ? c.out / kCodeGroup * kCodeGroup : c.out;
        reference().integer_in_major(w.view, x.data(), stride, scales.data(), rows, channels, n,
                                     begin, end, expected.data(), y_stride);
        fast().integer_in_major(w.view, x.data(), stride, scales.data(), rows, channels, n, begin,
                                end, got.data(), y_stride);
        EXPECT_SAME_BITS(got, expected);
      }
    }
  }
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
  int64_t x_stride, y_stride;
  std::vector<float> x;
  test::StoredMatrix w;
  Problem(int r, int i, int o, Layout l)
      : rows(r),
        in(i),
        out(o),
        layout(l),
        x_stride(i + 3),
        y_stride(o + 5),
        x(random_floats(static_cast<size_t>(r * x_stride), 21)),
        w(random_weights({i, o, 1}, l, 22)) {}

  std::vector<float> run(MatmulMode mode, std::span<const int> channels = {}) const {
    std::vector<float> y(static_cast<size_t>(rows * y_stride), 0.5f);
    integer_matmul(x.data(), x_stride, rows, w.view, channels, y.data(), y_stride, mode);
    return y;
  }
  std::vector<float> row(const std::vector<float>& y, int r) const {
    const auto at = y.begin() + r * y_stride;
    return {at, at + out};
  }
};

constexpr Layout kLayouts[] = {Layout::out_major, Layout::in_major};

TEST_P(Integer, TheLibraryGivesTheSameBits) {
  for (const Layout layout : kLayouts) {
    for (const auto& [in, out] : {std::pair{64, 96}, {300, 130}, {1000, 77}}) {
      const Problem p(33, in, out, layout);
      EXPECT_SAME_BITS(p.run(MatmulMode::library), p.run(MatmulMode::own));
    }
  }
}

// Sums that float32 does not hold exactly are rounded once, by whoever adds them.
TEST_P(Integer, TheLibraryRoundsLargeSumsAsWeDo) {
  for (const Layout layout : kLayouts) {
    Problem p(40, 8192, 64, layout);
    for (float& v : p.x) v = 1.0f + std::fabs(v);
    const auto weights = random_floats(static_cast<size_t>(p.in) * p.out, 23);
    std::vector<float> positive;
    for (const float v : weights) positive.push_back(1.0f + std::fabs(v));
    p.w = test::stored_matrix(positive, WeightType::int8, layout, p.in, p.out);
    EXPECT_SAME_BITS(p.run(MatmulMode::library), p.run(MatmulMode::own));
    std::vector<float> sums(static_cast<size_t>(p.rows) * p.out);
    const std::vector<int8_t> codes(static_cast<size_t>(p.rows) * p.in, 127);
    // Whether it is the library that is compared: it is wherever there is one that is exact.
    if (dnnl_code_sums(codes.data(), p.in, p.rows, p.w.view, sums.data(), p.out)) {
      EXPECT_GT(sums[0], 1 << 24);
    }
  }
}

TEST_P(Integer, RowsAndThreadsChangeNoBit) {
  const int threads = thread_count();
  for (const Layout layout : kLayouts) {
    const Problem p(20, 256, 300, layout);
    set_thread_count(3);
    const auto together = p.run(MatmulMode::library);
    set_thread_count(1);
    for (int r = 0; r < p.rows; ++r) {
      Problem one(1, p.in, p.out, layout);
      std::copy_n(p.x.begin() + r * p.x_stride, p.in, one.x.begin());
      EXPECT_SAME_BITS(one.row(one.run(MatmulMode::library), 0), p.row(together, r));
    }
  }
  set_thread_count(threads);
}

TEST_P(Integer, ARowThatIsNotFiniteSpoilsNoOther) {
  for (const Layout layout : kLayouts) {
    for (const int rows : {3, 12}) {
      Problem p(rows, 100, 40, layout);
      const auto clean = p.run(MatmulMode::library);
      p.x[static_cast<size_t>(p.x_stride) + 99] = INFINITY;
      const auto y = p.run(MatmulMode::library);
      for (int r = 0; r < rows; ++r) {
        if (r == 1) {
          EXPECT_THAT(p.row(y, r), testing::Each(testing::IsNan()));
        } else {
          EXPECT_SAME_BITS(p.row(y, r), p.row(clean, r));
        }
      }
    }
  }
}

TEST_P(Integer, IsCloseToTheProductOfTheNumbers) {
  for (const Layout layout : kLayouts) {
    const Problem p(2, 512, 64, layout);
    std::vector<float> exact(static_cast<size_t>(p.rows * p.y_stride));
    matmul(p.x.data(), p.x_stride, p.rows, p.w.view, exact.data(), p.y_stride, MatmulMode::own);
    const auto y = p.run(MatmulMode::own);
    double error = 0, total = 0;
    for (int r = 0; r < p.rows; ++r) {
      for (int o = 0; o < p.out; ++o) {
        const double right = exact[r * p.y_stride + o], wrong = y[r * p.y_stride + o] - right;
        error += wrong * wrong;
        total += right * right;
      }
    }
    EXPECT_LT(error / total, 3e-4);  // steps of a 127th of three standard deviations
    EXPECT_GT(error, 0);
  }
}

TEST_P(Integer, ListedChannelsEqualTheOthersBeingZero) {
  const Problem p(3, 100, 90, Layout::in_major);
  std::vector<int> kept;
  auto zeroed = p;
  zeroed.w.view.data = zeroed.w.bytes.data();
  for (int i = 0; i < p.in; ++i) {
    if (i % 5 < 2)
      kept.push_back(i);
    else
      for (int r = 0; r < p.rows; ++r) zeroed.x[r * p.x_stride + i] = 0;
  }
  EXPECT_SAME_BITS(p.run(MatmulMode::own, kept), zeroed.run(MatmulMode::own));
}

}  // namespace
}  // namespace sol::kernels
