#include <map>

#include "kernel_cases.h"

namespace sol::kernels {
namespace {

using test::kWeightTypes;
using test::random_floats;

class Products : public test::EachIsa {};
SOL_FOR_EACH_ISA(Products);

struct Case {
  int in, out, extra_stride;
};
const Case kCases[] = {{1, 1, 0},
                       {3, 17, 2},
                       {16, 16, 0},
                       {31, 9, 0},
                       {64, 65, 3},
                       {130, 63, 0},
                       {257, 33, 1},
                       {300, 130, 0},
                       {513, 70, 5},
                       {40, 5000, 0},
                       {5000, 9, 0},
                       // more inputs than a compressed row's product takes at a time
                       {8192 + 200, 19, 1},
                       // more outputs than a product takes at a time
                       {20, 17000, 0}};

test::StoredMatrix random_weights(const Case& c, Layout layout, WeightType type, uint32_t seed) {
  return test::stored_matrix(random_floats(static_cast<size_t>(c.in) * c.out, seed, 0.1f), type,
                             layout, c.in, c.out, c.extra_stride);
}

TEST_P(Products, MatvecsAgreeBitForBit) {
  for (const Case& c : kCases) {
    for (const WeightType type : kWeightTypes) {
      const auto x = random_floats(c.in, 1);
      std::vector<float> expected(c.out, 7.0f), got(c.out, 9.0f);
      const test::StoredMatrix out_major = random_weights(c, Layout::out_major, type, 2);
      reference().matvec_out_major(out_major.view, x.data(), 0, c.out, expected.data());
      fast().matvec_out_major(out_major.view, x.data(), 0, c.out, got.data());
      EXPECT_SAME_BITS(got, expected);

      const test::StoredMatrix in_major = random_weights(c, Layout::in_major, type, 3);
      reference().matmul_in_major(in_major.view, x.data(), 0, 1, nullptr, 0, 0, c.out,
                                  expected.data(), 0);
      fast().matmul_in_major(in_major.view, x.data(), 0, 1, nullptr, 0, 0, c.out, got.data(), 0);
      EXPECT_SAME_BITS(got, expected);
    }
  }
}

TEST_P(Products, AreRight) {
  for (const Case& c : kCases) {
    const auto x = random_floats(c.in, 4);
    const test::StoredMatrix w = random_weights(c, Layout::out_major, WeightType::f32, 5);
    std::vector<float> y(c.out);
    fast().matvec_out_major(w.view, x.data(), 0, c.out, y.data());
    const float* data = static_cast<const float*>(w.view.data);
    for (int o = 0; o < c.out; ++o) {
      double sum = 0;
      for (int i = 0; i < c.in; ++i) sum += static_cast<double>(x[i]) * data[o * w.view.stride + i];
      EXPECT_NEAR(y[o], sum, c.in > 1000 ? 1e-4 : 2e-5);
    }
  }
}

TEST_P(Products, RangesDoNotChangeResultsNorTouchOtherOutputs) {
  const Case c{97, 150, 1};
  for (const WeightType type : kWeightTypes) {
    for (const Layout layout : {Layout::out_major, Layout::in_major}) {
      const test::StoredMatrix w = random_weights(c, layout, type, 6);
      const auto x = random_floats(c.in, 7);
      const auto range = [&](int begin, int end, float* y) {
        if (layout == Layout::out_major)
          fast().matvec_out_major(w.view, x.data(), begin, end, y);
        else
          fast().matmul_in_major(w.view, x.data(), 0, 1, nullptr, 0, begin, end, y, 0);
      };
      std::vector<float> whole(c.out), pieces(c.out, -5.0f);
      const bool groups = is_compressed(type) && layout == Layout::in_major;
      const int a = groups ? kCodeGroup : 11, b = groups ? 4 * kCodeGroup : 149;
      range(0, c.out, whole.data());
      range(a, 64, pieces.data());
      EXPECT_EQ(pieces[a - 1], -5.0f);
      EXPECT_EQ(pieces[64], -5.0f);
      range(0, a, pieces.data());
      range(64, b, pieces.data());
      range(b, 150, pieces.data());
      EXPECT_SAME_BITS(pieces, whole);
    }
  }
}

TEST_P(Products, DroppedChannelEqualsMultiplicationByZero) {
  for (const Case& c : kCases) {
    for (const WeightType type : kWeightTypes) {
      const test::StoredMatrix w = random_weights(c, Layout::in_major, type, 8);
      for (const int rows : {1, 2, 3, 4, 7}) {
        auto x = random_floats(static_cast<size_t>(rows) * c.in, 9);
        std::vector<int> kept;
        auto zeroed = x;
        for (int i = 0; i < c.in; ++i) {
          if (i % 3 == 0 || i % 7 == 2) {
            kept.push_back(i);
            continue;
          }
          for (int r = 0; r < rows; ++r) zeroed[r * c.in + i] = 0;
        }
        std::vector<float> skipped(rows * c.out, 3.0f), multiplied(rows * c.out, 4.0f);
        fast().matmul_in_major(w.view, x.data(), c.in, rows, kept.data(),
                               static_cast<int>(kept.size()), 0, c.out, skipped.data(), c.out);
        fast().matmul_in_major(w.view, zeroed.data(), c.in, rows, nullptr, 0, 0, c.out,
                               multiplied.data(), c.out);
        EXPECT_SAME_BITS(skipped, multiplied);
      }
    }
  }
}

TEST_P(Products, DroppedChannelsAreNotRead) {
  const Case c{20, 40, 0};
  auto w = random_floats(c.in * c.out, 10);
  for (int o = 0; o < c.out; ++o) w[5 * c.out + o] = NAN;
  const auto memory = test::stored(w, ElementType::f32);
  const WeightView view{memory.data(), WeightType::f32, Layout::in_major, c.in, c.out, c.out};
  const int rows = 3;
  const auto x = random_floats(rows * c.in, 11);
  const std::vector<int> kept{0, 1, 4, 6, 7, 8, 9, 10, 11, 12, 19};
  std::vector<float> y(rows * c.out);
  fast().matmul_in_major(view, x.data(), c.in, rows, kept.data(), static_cast<int>(kept.size()), 0,
                         c.out, y.data(), c.out);
  EXPECT_THAT(y, testing::Each(testing::Truly([](float v) { return std::isfinite(v); })));
}

TEST_P(Products, ManyRowsEqualSingleRowsBitForBit) {
  for (const Case& c : kCases) {
    for (const WeightType type : kWeightTypes) {
      std::map<Layout, test::StoredMatrix> weights;
      for (const Layout layout : {Layout::out_major, Layout::in_major})
        weights.emplace(layout, random_weights(c, layout, type, 13));
      for (const int rows : {1, 2, 3, 4, 5, 6, 7, 12, 17}) {
        if (c.out > 1000 && rows > 5) continue;
        const int x_stride = c.in + 3, y_stride = c.out + 2;
        const auto x = random_floats((rows - 1) * x_stride + c.in, 12 + rows);
        for (const Layout layout : {Layout::out_major, Layout::in_major}) {
          const test::StoredMatrix& w = weights.at(layout);
          std::vector<float> together((rows - 1) * y_stride + c.out, 1.0f), alone = together;
          const int begin = c.out <= kCodeGroup ? 0 : is_compressed(type) ? kCodeGroup : 13;
          if (layout == Layout::out_major) {
            fast().matmul_out_major(w.view, x.data(), x_stride, rows, begin, c.out, together.data(),
                                    y_stride);
            for (int r = 0; r < rows; ++r)
              fast().matvec_out_major(w.view, x.data() + r * x_stride, begin, c.out,
                                      alone.data() + r * y_stride);
          } else {
            fast().matmul_in_major(w.view, x.data(), x_stride, rows, nullptr, 0, begin, c.out,
                                   together.data(), y_stride);
            for (int r = 0; r < rows; ++r)
              fast().matmul_in_major(w.view, x.data() + r * x_stride, 0, 1, nullptr, 0, begin,
                                     c.out, alone.data() + r * y_stride, 0);
          }
          EXPECT_SAME_BITS(together, alone);
        }
      }
    }
  }
}

TEST_P(Products, NoChannelsGiveZero) {
  const test::StoredMatrix w = random_weights({4, 19, 0}, Layout::in_major, WeightType::bf16, 14);
  const auto x = random_floats(4, 15);
  const int none = 0;
  std::vector<float> y(19, 2.0f);
  fast().matmul_in_major(w.view, x.data(), 0, 1, &none, 0, 0, 19, y.data(), 0);
  EXPECT_THAT(y, testing::Each(0.0f));
}

}  // namespace
}  // namespace sol::kernels
