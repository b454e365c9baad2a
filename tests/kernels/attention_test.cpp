#include <fmt/format.h>

#include "kernel_cases.h"

namespace sol::kernels {
namespace {

using test::expect_near;
using test::kTypes;
using test::random_floats;
using test::RandomCache;

class Attention : public test::EachIsa {};
SOL_FOR_EACH_ISA(Attention);

const int kDims[] = {4, 10, 16, 24, 48, 64, 80, 96, 128, 136};

TEST_P(Attention, AttendAgrees) {
  for (const int dim : kDims) {
    for (const ElementType type : kTypes) {
      const int tokens = 203;
      const RandomCache keys(tokens, dim, 16, type, 1), values(tokens, dim, 16, type, 2);
      const auto q = random_floats(dim, 3);
      const std::vector<std::vector<TokenRange>> cases{
          {{0, tokens}},        {{0, 1}},  {{202, 203}}, {{0, 4}, {9, 16}, {16, 17}, {40, 121}},
          {{5, 7}, {150, 203}}, {{64, 80}}};
      for (const auto& ranges : cases) {
        std::vector<float> expected(dim), got(dim);
        int n = 0;
        for (const TokenRange& r : ranges) n += r.end - r.begin;
        std::vector<float> scratch(n);
        const int count = static_cast<int>(ranges.size());
        reference().attend(q.data(), keys.view(), values.view(), ranges.data(), count, 0.3f,
                           scratch.data(), expected.data());
        fast().attend(q.data(), keys.view(), values.view(), ranges.data(), count, 0.3f,
                      scratch.data(), got.data());
        expect_near(got, expected, 2e-6f, 1e-5f);
      }
    }
  }
}

TEST_P(Attention, OneTokenIsItsValue) {
  const RandomCache keys(40, 64, 8, ElementType::f32, 4), values(40, 64, 8, ElementType::f32, 5);
  const auto q = random_floats(64, 6);
  const TokenRange one{37, 38};
  float scratch;
  std::vector<float> out(64);
  fast().attend(q.data(), keys.view(), values.view(), &one, 1, 0.125f, &scratch, out.data());
  const float* value =
      reinterpret_cast<const float*>(values.view().blocks[4] + values.view().offset) + 5 * 64;
  EXPECT_SAME_BITS(out, std::vector<float>(value, value + 64));
}

struct Chunk {
  int rows, heads, first_position, dim, block_tokens;
};

std::vector<float> run_causal(const Kernels& k, const Chunk& c, const std::vector<float>& q,
                              const CacheView& keys, const CacheView& values, int64_t row_stride,
                              int first_row, int rows) {
  std::vector<float> out(q.size(), 0.5f);
  const int64_t size =
      attend_causal_scratch(rows, c.heads, c.first_position + first_row + rows, c.dim);
  std::vector<float> scratch(size);
  k.attend_causal(q.data() + first_row * row_stride, row_stride, rows, c.heads,
                  c.first_position + first_row, keys, values, 0.2f, scratch.data(),
                  out.data() + first_row * row_stride);
  return out;
}

const Chunk kChunks[] = {{1, 1, 0, 16, 16},   {1, 4, 70, 64, 16},  {5, 3, 0, 10, 4},
                         {37, 2, 61, 64, 32}, {64, 1, 0, 128, 64}, {70, 4, 5, 80, 16},
                         {130, 1, 3, 24, 8},  {3, 7, 190, 4, 16}};

TEST_P(Attention, CausalAgreesWithTheReference) {
  for (const Chunk& c : kChunks) {
    for (const ElementType type : kTypes) {
      const int tokens = c.first_position + c.rows;
      const RandomCache keys(tokens, c.dim, c.block_tokens, type, 7),
          values(tokens, c.dim, c.block_tokens, type, 8);
      const int64_t stride = c.heads * c.dim + 5;
      const auto q = random_floats((c.rows - 1) * stride + c.heads * c.dim, 9);
      const auto expected =
          run_causal(reference(), c, q, keys.view(), values.view(), stride, 0, c.rows);
      const auto got = run_causal(fast(), c, q, keys.view(), values.view(), stride, 0, c.rows);
      expect_near(got, expected, 3e-6f, 1e-5f);
    }
  }
}

TEST_P(Attention, CausalRowsDoNotDependOnTheirCompany) {
  for (const Chunk& c : kChunks) {
    for (const ElementType type : kTypes) {
      const int tokens = c.first_position + c.rows;
      const RandomCache keys(tokens, c.dim, c.block_tokens, type, 10),
          values(tokens, c.dim, c.block_tokens, type, 11);
      const int64_t stride = c.heads * c.dim;
      const auto q = random_floats(c.rows * stride, 12);
      const auto whole = run_causal(fast(), c, q, keys.view(), values.view(), stride, 0, c.rows);
      for (int row = 0; row < c.rows; row += c.rows / 4 + 1) {
        for (const int rows : {1, 2, 9}) {
          if (row + rows > c.rows) continue;
          const auto part = run_causal(fast(), c, q, keys.view(), values.view(), stride, row, rows);
          const auto slice = [&](const std::vector<float>& v) {
            return std::vector<float>(v.begin() + row * stride, v.begin() + (row + rows) * stride);
          };
          EXPECT_SAME_BITS(slice(part), slice(whole));
        }
      }
    }
  }
}

TEST_P(Attention, CausalIgnoresLaterTokens) {
  // Keys and values of the second row are not numbers; the first row must not see them.
  const int dim = 32, first = 20;
  std::vector<float> k = random_floats((first + 2) * dim, 13), v = random_floats(k.size(), 14);
  for (int d = 0; d < dim; ++d) k[(first + 1) * dim + d] = v[(first + 1) * dim + d] = NAN;
  const std::byte* key_block = reinterpret_cast<const std::byte*>(k.data());
  const std::byte* value_block = reinterpret_cast<const std::byte*>(v.data());
  const CacheView keys{&key_block, 0, 64, dim, ElementType::f32};
  const CacheView values{&value_block, 0, 64, dim, ElementType::f32};
  const Chunk c{2, 1, first, dim, 64};
  const auto q = random_floats(2 * dim, 15);
  const auto out = run_causal(fast(), c, q, keys, values, dim, 0, 1);
  EXPECT_TRUE(std::isfinite(out[0]));
}

TEST_P(Attention, PageExtremaAreExact) {
  for (const int dim : kDims) {
    for (const ElementType type : kTypes) {
      for (const int count : {1, 2, 5, 16}) {
        auto x = random_floats(dim * count, 16);
        x[0] = 0.0f;
        x[dim * (count - 1)] = -0.0f;
        const auto keys = test::stored(x, type);
        std::vector<std::byte> expected(2 * dim * size_of(type)), got(expected.size());
        reference().page_extrema(keys.data(), type, count, dim, expected.data());
        fast().page_extrema(keys.data(), type, count, dim, got.data());
        EXPECT_EQ(got, expected);
      }
    }
  }
}

TEST_P(Attention, PageScoresAgreeBitForBit) {
  for (const int dim : kDims) {
    for (const ElementType type : kTypes) {
      for (const int pages : {1, 2, 3, 4, 5, 13}) {
        const auto extrema = test::stored(random_floats(pages * 2 * dim, 17), type);
        auto q = random_floats(dim, 18);
        q[1] = 0;
        std::vector<float> expected(pages), got(pages);
        reference().page_scores(q.data(), extrema.data(), type, pages, dim, expected.data());
        fast().page_scores(q.data(), extrema.data(), type, pages, dim, got.data());
        EXPECT_SAME_BITS(got, expected);
      }
    }
  }
}

}  // namespace
}  // namespace sol::kernels
