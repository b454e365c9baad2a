#include "kernels/matmul.h"

#include <fmt/format.h>
#include <omp.h>

#include <dnnl.hpp>

#include "base/threads.h"
#include "kernel_cases.h"
#include "kernels/matmul_bf16.h"
#include "kernels/matmul_dnnl.h"

namespace sol::kernels {
namespace {

using test::kWeightTypes;
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

// oneDNN takes other kernels for rows that lie one after the other, as the engine's do, than for
// rows that lie apart.
enum class Rows { dense, apart };

struct Problem {
  int rows, in, out;
  WeightType type;
  Layout layout;
  std::vector<float> x;
  test::StoredMatrix weights;
  WeightView view;
  int64_t x_stride, y_stride;

  Problem(int r, int i, int o, WeightType t, Layout l, Rows lie, uint32_t seed = 0)
      : rows(r), in(i), out(o), type(t), layout(l), x_stride(i), y_stride(o) {
    const bool apart = lie == Rows::apart;
    if (apart) x_stride += 2, y_stride += 3;
    x = random_floats((rows - 1) * x_stride + in, 2 * seed + 1);
    weights = test::stored_matrix(random_floats(static_cast<size_t>(in) * out, 2 * seed + 2, 0.1f),
                                  type, layout, in, out, apart ? 4 : 0);
    view = weights.view;
  }

  std::vector<float> unset() const {
    return std::vector<float>((rows - 1) * y_stride + out, 0.25f);
  }

  std::vector<float> run(MatmulMode mode) const {
    std::vector<float> y = unset();
    matmul(x.data(), x_stride, rows, view, y.data(), y_stride, mode);
    return y;
  }

  // In float64, the operands rounded to bf16 if asked: with int8 weights these are codes, whose row
  // has a scale that belongs to the output or, in_major, to x.
  std::vector<float> truth(bool round) const {
    std::vector<float> y = unset();
    const bool by_output = layout == Layout::out_major;
    const int columns = by_output ? in : out;
    std::vector<float> w(static_cast<size_t>(in) * out), scale(by_output ? out : in, 1.0f);
    for (size_t r = 0; r < scale.size(); ++r) {
      const Kernels& reference = kernels_for(Isa::reference);
      float* row = w.data() + r * columns;
      reference.widen_summands(view, r, 0, columns, ElementType::f32, row);
      std::vector<float> widened(columns);
      reference.widen_row(view, r, 0, columns, ElementType::f32, widened.data());
      for (int i = 0; i < columns; ++i)
        if (row[i] != 0) scale[r] = widened[i] / row[i];
    }
    const auto operand = [&](float v) {
      return static_cast<double>(round ? to_float(to_bf16(v)) : v);
    };
    for (int r = 0; r < rows; ++r) {
      for (int o = 0; o < out; ++o) {
        double sum = 0;
        for (int i = 0; i < in; ++i)
          sum += operand(by_output ? x[r * x_stride + i] : x[r * x_stride + i] * scale[i]) *
                 operand(w[by_output ? o * in + i : i * out + o]);
        y[r * y_stride + o] = static_cast<float>(by_output ? sum * scale[o] : sum);
      }
    }
    return y;
  }
};

std::vector<Problem> problems() {
  std::vector<Problem> all;
  for (const WeightType type : kWeightTypes)
    for (const Layout layout : {Layout::out_major, Layout::in_major})
      for (const auto& [rows, in, out] : {std::tuple{1, 33, 70},
                                          {2, 64, 200},
                                          {5, 100, 1},
                                          {7, 1, 40},
                                          {8, 256, 130},
                                          {33, 65, 257},
                                          {9, 1100, 520}})
        for (const Rows lie : {Rows::dense, Rows::apart})
          all.emplace_back(rows, in, out, type, layout, lie);
  return all;
}

TEST_P(Matmul, BothModesAreRight) {
  for (const Problem& p : problems()) {
    // Inputs of products with codes have 16 bits below the largest of a block.
    const float float32 = p.in > 1000 ? 1e-4f : 3e-5f;
    const float tolerance = is_compressed(p.type) ? 6 * float32 : float32;
    test::expect_near(p.run(MatmulMode::own), p.truth(false), tolerance, 1e-5f);
    const auto library = p.run(MatmulMode::library);
    const auto exact = p.truth(false), rounded = p.truth(true);
    // The library may round its operands to bf16 unless the weights are f32: near one of the two,
    // everywhere.
    const auto worst = [&](const std::vector<float>& t) {
      float error = 0;
      for (size_t i = 0; i < t.size(); ++i) error = std::max(error, std::fabs(t[i] - library[i]));
      return error;
    };
    const float error =
        p.type == WeightType::f32 ? worst(exact) : std::min(worst(exact), worst(rounded));
    EXPECT_LT(error, tolerance) << p.rows << " " << p.in << " " << p.out;
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

// Products of one shape at once, each of its own numbers: what one writes no other may read.
TEST_P(Matmul, WorksInsideParallelRegions) {
  constexpr int kAtOnce = 4;
  const int rounds = GetParam() == Isa::reference ? 1 : 100;  // no library there to get it wrong
  const WeightType narrow = has_avx512(GetParam()) ? WeightType::bf16 : WeightType::f32;
  set_thread_count(1);
  for (const WeightType type : {WeightType::f32, narrow, WeightType::int8}) {
    for (const Layout layout : {Layout::out_major, Layout::in_major}) {
      for (const MatmulMode mode : {MatmulMode::library, MatmulMode::library_f32}) {
        std::vector<Problem> products;
        std::vector<std::vector<float>> expected, results(kAtOnce);
        for (uint32_t seed = 0; seed < kAtOnce; ++seed) {
          const Problem& p = products.emplace_back(40, 256, 384, type, layout, Rows::dense, seed);
          expected.push_back(p.run(mode));
          test::expect_near(expected.back(), p.run(MatmulMode::own), 0.05f, 1e-5f);
        }
        for (int round = 0; round < rounds; ++round) {
#pragma omp parallel for num_threads(2) schedule(static, 1)
          for (int i = 0; i < kAtOnce; ++i) results[i] = products[i].run(mode);
          for (int i = 0; i < kAtOnce; ++i) EXPECT_SAME_BITS(results[i], expected[i]);
          if (HasFailure()) return;
        }
      }
    }
  }
}

// Panels of one shape, multiplied by all threads at once.
TEST_P(Matmul, WidenedPanelsDoNotMeet) {
  if (!dnnl_multiplies(ElementType::f32)) GTEST_SKIP() << "without oneDNN there are no panels";
  for (const Layout layout : {Layout::out_major, Layout::in_major}) {
    const Problem p(33, 1024, 2048, WeightType::int8, layout, Rows::dense);
    const auto exact = p.run(MatmulMode::own);
    for (const MatmulMode mode : {MatmulMode::library, MatmulMode::library_f32}) {
      set_thread_count(1);
      const auto serial = p.run(mode);
      test::expect_near(serial, exact, mode == MatmulMode::library ? 0.1f : 6e-4f, 1e-5f);
      for (const int threads : {2, 4}) {
        set_thread_count(threads);
        for (int round = 0; round < 4; ++round) EXPECT_SAME_BITS(p.run(mode), serial);
      }
    }
  }
}

// Int8 codes: as whole numbers for up to four rows, as they are by AVX512-BF16 for up to 16.
TEST_P(Matmul, CodesAreMultipliedByWhatIsFastForSoManyRows) {
  for (const Layout layout : {Layout::out_major, Layout::in_major}) {
    for (const int rows : {4, 5, 16}) {
      const Problem p(rows, 96, 320, WeightType::int8, layout, Rows::dense);
      if (vectors_multiply_codes(rows)) {
        std::vector<float> y = p.unset();
        codes_matmul(p.x.data(), p.x_stride, rows, p.view, y.data(), p.y_stride);
        EXPECT_SAME_BITS(p.run(MatmulMode::library), y);
      } else if (rows < 9) {
        EXPECT_SAME_BITS(p.run(MatmulMode::library), p.run(MatmulMode::own));
      }
      if (rows < 9) {
        EXPECT_SAME_BITS(p.run(MatmulMode::library_f32), p.run(MatmulMode::own));
      }
    }
  }
}

TEST_P(Matmul, ThreadCountMayChangeBetweenCalls) {
  const Problem p(12, 128, 384, WeightType::f32, Layout::out_major, Rows::apart);
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
  const Problem f32(40, 128, 256, WeightType::f32, Layout::in_major, Rows::dense);
  const Problem bf16(40, 128, 256, WeightType::bf16, Layout::in_major, Rows::dense);
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
    case Isa::avx512_vnni:
      EXPECT_EQ(took_f32, !limited_to_avx2);
      EXPECT_EQ(took_bf16, !limited_to_avx2 && cpu_multiplies_bf16());
      break;
  }
}

TEST_P(Matmul, NoRowsAreNoWork) {
  const Problem p(1, 8, 8, WeightType::f32, Layout::out_major, Rows::dense);
  float untouched = 3;
  matmul(p.x.data(), 8, 0, p.view, &untouched, 8, MatmulMode::library);
  EXPECT_EQ(untouched, 3);
}

}  // namespace
}  // namespace sol::kernels
