#include <fmt/format.h>

#include <random>

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

// A part of cached tokens cut into pieces, for rows that attend to some of them.
struct Part {
  int dim, rows;
  ElementType type;
  RandomCache keys, values;
  std::vector<float> q;
  std::vector<AttendPiece> pieces;
  int shared = -1;  // pieces; all of them

  Part(int dim_, int rows_, int block_tokens, ElementType type_, uint32_t seed)
      : dim(dim_),
        rows(rows_),
        type(type_),
        keys(kPartTokens, dim, block_tokens, type, seed),
        values(kPartTokens, dim, block_tokens, type, seed + 1),
        q(random_floats(static_cast<size_t>(rows) * dim, seed + 2)) {}

  void add(int position, int count, uint64_t who) {
    const auto at = [&](const CacheView& view) {
      return view.blocks[position / view.block_tokens] + view.offset +
             static_cast<int64_t>(position % view.block_tokens) * dim * size_of(type);
    };
    pieces.push_back({at(keys.view()), at(values.view()), position, count, who});
  }

  // Partial results of all rows, or of one of them alone: [rows][dim + 2].
  std::vector<float> run(const Kernels& k, int only = -1) const {
    std::vector<float> out(static_cast<size_t>(rows) * (dim + 2), 7.0f);
    std::vector<AttendRow> all;
    auto mine = pieces;
    for (int r = 0; r < rows; ++r)
      if (only < 0 || r == only) all.push_back({&q[r * dim], &out[r * (dim + 2)]});
    if (only >= 0) {
      std::erase_if(mine, [&](const AttendPiece& p) { return !(p.rows >> only & 1); });
      for (AttendPiece& p : mine) p.rows = 1;
    }
    std::vector<float> scratch(attend_part_scratch);
    const int count = static_cast<int>(mine.size());
    k.attend_part(all.data(), static_cast<int>(all.size()), dim, type, mine.data(), count,
                  only < 0 && shared >= 0 ? shared : count, {pieces.data(), std::min(2, count)},
                  0.3f, scratch.data());
    return out;
  }
};

// Pieces of 1 to 16 tokens, each for a random set of rows, often for nobody.
Part random_part(int dim, int rows, int block_tokens, ElementType type, uint32_t seed) {
  Part part(dim, rows, block_tokens, type, seed);
  std::mt19937_64 generator(seed);
  for (int j = 0; j < kPartTokens;) {
    const int left = std::min(kPartTokens - j, block_tokens - j % block_tokens);
    const int count = std::min(left, 1 + static_cast<int>(generator() % 16));
    const uint64_t who = generator() & (~uint64_t{0} >> (64 - rows));
    if (who && generator() % 3) part.add(j, count, who);
    j += count;
  }
  return part;
}

TEST_P(Attention, PartsAgreeWithTheReference) {
  for (const int dim : kDims) {
    for (const ElementType type : kTypes) {
      for (const int rows : {1, 2, 3, 4, 5, 6, 7, 8, 19, 64}) {
        if (rows > 8 && dim > 64) continue;
        const Part part = random_part(dim, rows, 32, type, 100 + rows);
        expect_near(part.run(fast()), part.run(reference()), 5e-6f, 1e-5f);
      }
    }
  }
}

TEST_P(Attention, DensePartsAgreeWithTheReference) {
  for (const int dim : {64, 80, 128}) {
    for (const ElementType type : kTypes) {
      Part part(dim, 4, 32, type, 5);
      for (int j = 0; j < 251; j += 32) part.add(j, std::min(32, 251 - j), 15);
      expect_near(part.run(fast()), part.run(reference()), 5e-6f, 1e-5f);
    }
  }
}

TEST_P(Attention, RowsDoNotDependOnTheirCompany) {
  for (const int dim : {10, 64, 128}) {
    for (const ElementType type : kTypes) {
      const Part part = random_part(dim, 11, 16, type, 21);
      const auto together = part.run(fast());
      for (int r = 0; r < part.rows; ++r) {
        const auto alone = part.run(fast(), r);
        const auto row = [&](const std::vector<float>& v) {
          return std::vector<float>(v.begin() + r * (dim + 2), v.begin() + (r + 1) * (dim + 2));
        };
        EXPECT_SAME_BITS(row(alone), row(together));
      }
    }
  }
}

// Sequences that share their first tokens and continue apart, at the same positions.
TEST_P(Attention, RowsWithPiecesOfTheirOwnDoNotDependOnTheirCompany) {
  for (const ElementType type : kTypes) {
    for (const int rows : {2, 3, 7, 12}) {
      Part part(64, rows, 16, type, 61);
      std::mt19937_64 generator(7);
      for (int j = 0; j < 96; j += 8) {
        const uint64_t who = generator() & (~uint64_t{0} >> (64 - rows));
        if (who) part.add(j, 8, generator() % 2 ? who : ~uint64_t{0} >> (64 - rows));
      }
      part.shared = static_cast<int>(part.pieces.size());
      for (int r = 0; r + 1 < rows; ++r) {  // the last has none
        part.add(96, 1 + r, uint64_t{1} << r);
        part.pieces.back().position = 96;
        part.add(128 + 4 * r, 4, uint64_t{1} << r);
        part.pieces.back().position = 128;
      }
      const auto together = part.run(fast());
      expect_near(together, part.run(reference()), 5e-6f, 1e-5f);
      for (int r = 0; r < rows; ++r) {
        const auto alone = part.run(fast(), r);
        const auto row = [&](const std::vector<float>& v) {
          return std::vector<float>(v.begin() + r * 66, v.begin() + (r + 1) * 66);
        };
        EXPECT_SAME_BITS(row(alone), row(together));
      }
    }
  }
}

TEST_P(Attention, HowAPartIsCutChangesNothing) {
  Part whole(64, 3, 256, ElementType::bf16, 31), cut = whole;
  whole.add(3, 200, 7);
  for (int j = 3, n = 1; j < 203; j += n, n = std::min(n % 7 + 1, 203 - j)) cut.add(j, n, 7);
  EXPECT_SAME_BITS(whole.run(fast()), cut.run(fast()));
}

TEST_P(Attention, OneTokenIsItsValueAndNoTokenIsNothing) {
  Part part(64, 2, 8, ElementType::f32, 41);
  part.add(37, 1, 1);
  const auto out = part.run(fast());
  const CacheView& view = part.values.view();
  const float* value = reinterpret_cast<const float*>(view.blocks[4] + view.offset) + 5 * 64;
  EXPECT_SAME_BITS(std::vector<float>(out.begin(), out.begin() + 64),
                   std::vector<float>(value, value + 64));
  EXPECT_EQ(out[65], 1.0f);
  EXPECT_EQ(std::count(out.begin() + 66, out.begin() + 130, 0.0f), 64);
  EXPECT_EQ(out[130], -INFINITY);
  EXPECT_EQ(out[131], 0.0f);

  std::vector<float> merged(64);
  const float* both[] = {&out[0], &out[66]};
  std::vector<float> parts(both[0], both[0] + 132);
  fast().merge_parts(parts.data(), 2, 66, 64, merged.data());
  EXPECT_SAME_BITS(merged, std::vector<float>(value, value + 64));
}

TEST_P(Attention, MergedPartsAgreeWithTheReference) {
  for (const int dim : kDims) {
    for (const int parts : {1, 2, 5}) {
      auto partials = random_floats(static_cast<size_t>(parts) * (dim + 3), 51);
      for (int i = 0; i < parts; ++i)
        partials[i * (dim + 3) + dim + 1] = 0.5f + static_cast<float>(i);
      std::vector<float> expected(dim), got(dim);
      reference().merge_parts(partials.data(), parts, dim + 3, dim, expected.data());
      fast().merge_parts(partials.data(), parts, dim + 3, dim, got.data());
      expect_near(got, expected, 2e-6f, 1e-5f);
    }
  }
}

TEST_P(Attention, SoftmaxStepsAgreeWithTheReference) {
  const int dim = 40, rows = 7, heads = 3, keys = 48, stride = 64;
  for (const int seen : {-1, 0, 1, 17, 46, 60}) {
    auto scores = random_floats(rows * stride, 71, 3.0f), expected = scores;
    auto out = random_floats(rows * dim, 72), expected_out = out;
    std::vector<float> largest{-INFINITY, -5, 0, 1, 9, -INFINITY, 2}, total{0, 1, 2, 1, 1, 0, 3};
    auto expected_largest = largest, expected_total = total;
    fast().softmax_step(scores.data(), stride, rows, keys, seen, heads, 0.7f, largest.data(),
                        total.data(), out.data(), dim);
    reference().softmax_step(expected.data(), stride, rows, keys, seen, heads, 0.7f,
                             expected_largest.data(), expected_total.data(), expected_out.data(),
                             dim);
    expect_near(largest, expected_largest, 0, 1e-6f);
    expect_near(total, expected_total, 1e-6f, 1e-5f);
    expect_near(out, expected_out, 1e-6f, 1e-5f);
    for (int r = 0; r < rows; ++r) {
      const auto* got = reinterpret_cast<const bf16*>(&scores[r * stride]);
      const auto* want = reinterpret_cast<const bf16*>(&expected[r * stride]);
      for (int j = 0; j < keys; ++j)
        EXPECT_NEAR(to_float(got[j]), to_float(want[j]), 0.005f * to_float(want[j])) << j;
    }
  }
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

// The key of row 5 is not a number: rows before it must not notice, whichever group it is worked
// in, the others do. What lies behind the call's last position is not read at all.
TEST_P(Attention, CausalIgnoresLaterTokens) {
  constexpr int dim = 32, first = 20, rows = 9, bad = 5;
  for (const int heads : {1, 2, 3}) {
    const Chunk c{rows, heads, first, dim, 64};
    std::vector<float> k = random_floats((first + rows + 1) * dim, 13);
    std::vector<float> v = random_floats(k.size(), 14);
    const std::byte* key_block = reinterpret_cast<const std::byte*>(k.data());
    const std::byte* value_block = reinterpret_cast<const std::byte*>(v.data());
    const CacheView keys{&key_block, 0, 64, dim, ElementType::f32};
    const CacheView values{&value_block, 0, 64, dim, ElementType::f32};
    const int stride = heads * dim;
    const auto q = random_floats(rows * stride, 15);
    const auto clean = run_causal(fast(), c, q, keys, values, stride, 0, rows);
    for (int d = 0; d < dim; ++d)
      k[(first + rows) * dim + d] = v[(first + rows) * dim + d] = k[(first + bad) * dim + d] = NAN;
    const auto out = run_causal(fast(), c, q, keys, values, stride, 0, rows);
    const auto before = [&](const std::vector<float>& all) {
      return std::vector<float>(all.begin(), all.begin() + bad * stride);
    };
    EXPECT_SAME_BITS(before(out), before(clean));
    EXPECT_THAT(std::vector<float>(out.begin() + bad * stride, out.end()),
                testing::Each(testing::IsNan()));
  }
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

TEST_P(Attention, PageMomentsAgreeBitForBit) {
  for (const int dim : kDims) {
    for (const ElementType type : kTypes) {
      for (const int count : {1, 2, 5, 16}) {
        const auto keys = test::stored(random_floats(dim * count, 16), type);
        std::vector<std::byte> expected(2 * dim * size_of(type)), got(expected.size());
        reference().page_moments(keys.data(), type, count, dim, expected.data());
        fast().page_moments(keys.data(), type, count, dim, got.data());
        EXPECT_EQ(got, expected);
      }
    }
  }
}

// Against the definition in double: mean and variance of the page, and the logarithm of the mean
// weight of normally distributed keys.
TEST_P(Attention, PageMomentsAndTheirScoresAreWhatTheyAreCalled) {
  constexpr int dim = 8, count = 5;
  const auto keys = random_floats(dim * count, 3);
  std::vector<float> moments(2 * dim);
  fast().page_moments(keys.data(), ElementType::f32, count, dim, moments.data());
  const auto q = random_floats(dim, 4);
  double score = 0;
  for (int d = 0; d < dim; ++d) {
    double mean = 0, variance = 0;
    for (int j = 0; j < count; ++j) mean += static_cast<double>(keys[j * dim + d]) / count;
    for (int j = 0; j < count; ++j) {
      const double difference = static_cast<double>(keys[j * dim + d]) - mean;
      variance += difference * difference / count;
    }
    EXPECT_NEAR(moments[d], mean, 1e-6);
    EXPECT_NEAR(moments[dim + d], variance, 1e-6);
    const double x = static_cast<double>(q[d]);
    score += x * mean + x * x * variance / (2 * std::sqrt(static_cast<double>(dim)));
  }
  const std::byte* block = reinterpret_cast<const std::byte*>(moments.data());
  const PagesView view{&block, 0, 1, dim, ElementType::f32, PageSummary::moments};
  float got = 0;
  fast().page_scores(q.data(), 1, view, 0, 1, &got, 1);
  EXPECT_NEAR(got, score, 1e-5);
}

TEST_P(Attention, PageScoresAgreeBitForBit) {
  for (const PageSummary summary : {PageSummary::extrema, PageSummary::moments})
    for (const int dim : kDims) {
      for (const ElementType type : kTypes) {
        for (const int pages : {1, 2, 3, 4, 5, 13, 40}) {
          for (const int heads : {1, 2, 3, 4, 7}) {
            const RandomCache extrema(2 * pages, dim, 16, type, 17);
            const PagesView view{
                extrema.view().blocks, extrema.view().offset, 8, dim, type, summary};
            auto q = random_floats(static_cast<size_t>(heads) * dim, 18);
            q[1] = 0;
            for (const int first : {0, pages / 3}) {
              std::vector<float> expected(heads * (pages + 1), 3.0f), got = expected;
              reference().page_scores(q.data(), heads, view, first, pages - first, expected.data(),
                                      pages + 1);
              fast().page_scores(q.data(), heads, view, first, pages - first, got.data(),
                                 pages + 1);
              EXPECT_SAME_BITS(got, expected);
            }
          }
        }
      }
    }
}

}  // namespace
}  // namespace sol::kernels
