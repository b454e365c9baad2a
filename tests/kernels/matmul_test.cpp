#include "kernels/matmul.h"

#include <fmt/format.h>
#include <omp.h>

#include <dnnl.hpp>

#include "base/threads.h"
#include "kernel_cases.h"
#include "kernels/matmul_dnnl.h"

namespace sol::kernels {
namespace {

using test::kTypes;
using test::random_floats;

// Runs under each instruction set and puts everything back afterwards.
class Matmul : public test::EachIsa {
 protected:
  void SetUp() override {
    before_ = current_isa();
    threads_ = thread_count();
    force_isa(GetParam());
  }
  void TearDown() override {
    force_isa(before_);
    set_thread_count(threads_);
  }

 private:
  Isa before_{};
  int threads_ = 0;
};
SOL_FOR_EACH_ISA(Matmul);

struct Problem {
  int rows, in, out;
  ElementType type;
  Layout layout;
  std::vector<float> x;
  test::Stored weights;
  WeightView view;
  int64_t x_stride, y_stride;

  Problem(int r, int i, int o, ElementType t, Layout l)
      : rows(r), in(i), out(o), type(t), layout(l), x_stride(i + 2), y_stride(o + 3) {
    x = random_floats((rows - 1) * x_stride + in, 1);
    const int64_t stride = (layout == Layout::out_major ? in : out) + 4;
    weights = test::stored(
        random_floats((layout == Layout::out_major ? out : in) * stride, 2, 0.1f), type);
    view = {weights.data(), type, layout, in, out, stride};
  }

  std::vector<float> run(MatmulMode mode) const {
    std::vector<float> y((rows - 1) * y_stride + out, 0.25f);
    matmul(x.data(), x_stride, rows, view, y.data(), y_stride, mode);
    return y;
  }

  // In float64, x rounded as asked.
  std::vector<float> truth(bool round_x) const {
    std::vector<float> y((rows - 1) * y_stride + out, 0.25f);
    std::vector<float> w(view.stride * (layout == Layout::out_major ? out : in));
    kernels_for(Isa::reference).load(view.data, type, static_cast<int>(w.size()), w.data());
    for (int r = 0; r < rows; ++r) {
      for (int o = 0; o < out; ++o) {
        double sum = 0;
        for (int i = 0; i < in; ++i) {
          const float a = x[r * x_stride + i];
          sum += static_cast<double>(round_x ? to_float(to_bf16(a)) : a) *
                 w[layout == Layout::out_major ? o * view.stride + i : i * view.stride + o];
        }
        y[r * y_stride + o] = static_cast<float>(sum);
      }
    }
    return y;
  }
};

std::vector<Problem> problems() {
  std::vector<Problem> all;
  for (const ElementType type : kTypes)
    for (const Layout layout : {Layout::out_major, Layout::in_major})
      for (const auto& [rows, in, out] : {std::tuple{1, 33, 70},
                                          {2, 64, 200},
                                          {5, 100, 1},
                                          {7, 1, 40},
                                          {8, 256, 130},
                                          {33, 65, 257}})
        all.emplace_back(rows, in, out, type, layout);
  return all;
}

TEST_P(Matmul, BothModesAreRight) {
  for (const Problem& p : problems()) {
    test::expect_near(p.run(MatmulMode::own), p.truth(false), 2e-5f, 1e-5f);
    const auto library = p.run(MatmulMode::library);
    const auto exact = p.truth(false), rounded = p.truth(true);
    // The library may round x to bf16 with bf16 weights: near one of the two, everywhere.
    const auto worst = [&](const std::vector<float>& t) {
      float error = 0;
      for (size_t i = 0; i < t.size(); ++i) error = std::max(error, std::fabs(t[i] - library[i]));
      return error;
    };
    const float error =
        p.type == ElementType::f32 ? worst(exact) : std::min(worst(exact), worst(rounded));
    EXPECT_LT(error, 3e-5f) << p.rows << " " << p.in << " " << p.out;
  }
}

TEST_P(Matmul, OwnResultsDependNeitherOnRowsNorOnThreads) {
  for (const Problem& p : problems()) {
    set_thread_count(1);
    const auto serial = p.run(MatmulMode::own);
    for (const int threads : {2, 3, 7}) {
      set_thread_count(threads);
      EXPECT_SAME_BITS(p.run(MatmulMode::own), serial);
    }
    std::vector<float> alone(serial.size(), 0.25f);
    for (int r = 0; r < p.rows; ++r)
      matmul(p.x.data() + r * p.x_stride, p.x_stride, 1, p.view, alone.data() + r * p.y_stride,
             p.y_stride, MatmulMode::own);
    EXPECT_SAME_BITS(alone, serial);
  }
}

TEST_P(Matmul, OwnResultsAreTheReferencesOnEverySet) {
  for (const Problem& p : problems()) {
    const auto here = p.run(MatmulMode::own);
    force_isa(Isa::reference);
    EXPECT_SAME_BITS(here, p.run(MatmulMode::own));
    force_isa(GetParam());
  }
}

TEST_P(Matmul, WorksInsideParallelRegions) {
  const Problem p(16, 96, 320, GetParam() == Isa::avx512 ? ElementType::bf16 : ElementType::f32,
                  Layout::in_major);
  const auto expected = p.run(MatmulMode::library);
  std::vector<std::vector<float>> results(4);
#pragma omp parallel for num_threads(2)
  for (int i = 0; i < 4; ++i) results[i] = p.run(MatmulMode::library);
  for (const auto& result : results) test::expect_near(result, expected, 1e-5f, 1e-5f);
}

TEST_P(Matmul, ThreadCountMayChangeBetweenCalls) {
  const Problem p(12, 128, 384, ElementType::f32, Layout::out_major);
  const auto expected = p.truth(false);
  for (const int threads : {2, 1, 3, 2}) {
    set_thread_count(threads);
    test::expect_near(p.run(MatmulMode::library), expected, 2e-5f, 1e-5f);
  }
}

// Which products oneDNN takes. It decides once per process which instructions it may use (through
// CTest every test is its own process), so this can be told only where nothing was decided before.
TEST_P(Matmul, TheLibraryIsUsedWhereItIsFast) {
  const auto taken = [](const Problem& p) {
    std::vector<float> y((p.rows - 1) * p.y_stride + p.out);
    return dnnl_matmul(p.x.data(), p.x_stride, p.rows, p.view, y.data(), p.y_stride);
  };
  const Problem f32(40, 128, 256, ElementType::f32, Layout::in_major);
  const Problem bf16(40, 128, 256, ElementType::bf16, Layout::in_major);
  const bool took_f32 = taken(f32), took_bf16 = taken(bf16);
  const bool limited_to_avx2 = !(dnnl_get_effective_cpu_isa() & 0x20);  // AVX-512 core
  switch (GetParam()) {
    case Isa::reference:
      EXPECT_FALSE(took_f32);
      EXPECT_FALSE(took_bf16);
      break;
    case Isa::avx2:
      EXPECT_EQ(took_f32, limited_to_avx2);
      EXPECT_FALSE(took_bf16);
      break;
    case Isa::avx512:
      EXPECT_EQ(took_f32, !limited_to_avx2);
      EXPECT_EQ(took_bf16, !limited_to_avx2 && cpu_multiplies_bf16());
      break;
  }
}

TEST_P(Matmul, NoRowsAreNoWork) {
  const Problem p(1, 8, 8, ElementType::f32, Layout::out_major);
  float untouched = 3;
  matmul(p.x.data(), 8, 0, p.view, &untouched, 8, MatmulMode::library);
  EXPECT_EQ(untouched, 3);
}

}  // namespace
}  // namespace sol::kernels
