// BF16 products of many rows against the kernel that multiplies in float32.
#include "engine/shared_attention.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "kernels/tile_dnnl.h"

namespace sol::test {
namespace {

using kernels::AttendPiece;
using kernels::AttendRow;
using kernels::ElementType;
using kernels::kPartTokens;
using kernels::MatmulMode;

struct Case {
  int dim, rows, tokens;
  std::vector<bf16> keys, values;
  std::vector<float> q, partials;
  std::vector<AttendPiece> pieces;

  Case(int dim_, int rows_, int tokens_, uint32_t seed) : dim(dim_), rows(rows_), tokens(tokens_) {
    std::mt19937_64 generator(seed);
    std::normal_distribution<float> normal;
    for (int i = 0; i < tokens * dim; ++i) {
      keys.push_back(to_bf16(normal(generator)));
      values.push_back(to_bf16(normal(generator)));
    }
    for (int i = 0; i < rows * dim; ++i) q.push_back(normal(generator));
    for (int j = 0; j < tokens; j += 8) {
      // The first row attends to nothing, the second to everything.
      uint64_t who = generator() & (~uint64_t{0} >> (64 - rows));
      who = (who | 2) & ~uint64_t{1};
      pieces.push_back({&keys[j * dim], &values[j * dim], j, std::min(8, tokens - j), who});
    }
  }

  std::vector<AttendRow> result_rows() {
    partials.assign(static_cast<size_t>(rows) * (dim + 2), 9.0f);
    std::vector<AttendRow> all;
    for (int r = 0; r < rows; ++r) all.push_back({&q[r * dim], &partials[r * (dim + 2)]});
    return all;
  }
};

TEST(SharedAttention, AgreesWithTheKernelWithinRounding) {
  if (!kernels::have_tile_products()) GTEST_SKIP() << "the processor does not multiply bf16";
  for (const int dim : {64, 80, 128}) {
    for (const int rows : {16, 33, 64}) {
      for (const int tokens : {256, 199, 64}) {
        Case c(dim, rows, tokens, 1);
        const float scale = 1.0f / std::sqrt(static_cast<float>(dim));
        attend_shared(c.result_rows(), c.pieces, dim, scale);
        const auto got = c.partials;
        const auto all = c.result_rows();
        std::vector<float> scratch(kernels::attend_part_scratch);
        const int count = static_cast<int>(c.pieces.size());
        kernels::kernels().attend_part(all.data(), rows, dim, ElementType::bf16, c.pieces.data(),
                                       count, count, scale, scratch.data());
        const int64_t stride = dim + 2;
        for (int r = 0; r < rows; ++r) {
          const float* a = &got[r * stride];
          const float* b = &c.partials[r * stride];
          if (r == 0) {
            EXPECT_EQ(a[dim], -INFINITY);
            EXPECT_EQ(a[dim + 1], 0.0f);
            continue;
          }
          std::vector<float> merged_a(dim), merged_b(dim);
          kernels::kernels().merge_parts(a, 1, stride, dim, merged_a.data());
          kernels::kernels().merge_parts(b, 1, stride, dim, merged_b.data());
          for (int d = 0; d < dim; ++d) EXPECT_NEAR(merged_a[d], merged_b[d], 0.02f);
          EXPECT_NEAR(a[dim], b[dim], 0.05f);
        }
      }
    }
  }
}

TEST(SharedAttention, IsForManyRowsThatKeepMuch) {
  if (!kernels::have_tile_products()) GTEST_SKIP() << "the processor does not multiply bf16";
  Case many(64, 32, 256, 2), few(64, 4, 256, 3);
  const auto pays = [](Case& c, ElementType type, MatmulMode mode) {
    return worth_products(c.result_rows(), c.pieces, type, mode);
  };
  EXPECT_TRUE(pays(many, ElementType::bf16, MatmulMode::library));
  EXPECT_FALSE(pays(many, ElementType::bf16, MatmulMode::own));
  EXPECT_FALSE(pays(many, ElementType::f32, MatmulMode::library));
  EXPECT_FALSE(pays(few, ElementType::bf16, MatmulMode::library));
  for (AttendPiece& piece : many.pieces) piece.rows = 2;
  EXPECT_FALSE(pays(many, ElementType::bf16, MatmulMode::library));
}

}  // namespace
}  // namespace sol::test
