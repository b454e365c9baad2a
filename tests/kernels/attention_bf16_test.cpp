// Attention by what multiplies bf16 against the readable definition, in memory that ends where none
// may be read.
#include "kernels/attention_bf16.h"

#ifdef __x86_64__

#include <memory>

#include "guarded_copy.h"
#include "kernel_cases.h"
#include "kernels/amx_bf16/attend.h"
#include "kernels/avx512_bf16/attention.h"

namespace sol::kernels {
namespace {

using test::expect_near;
using test::GuardedCopy;
using test::random_floats;

const Kernels& reference() {
  return kernels_for(Isa::reference);
}

// What must be near: the sum's terms are that large.
float largest_of(const std::vector<float>& x) {
  float most = 0;
  for (const float v : x) most = std::max(most, std::isfinite(v) ? std::fabs(v) : 0.0f);
  return most;
}

// What every unit multiplies as it is.
std::vector<float> exact_in_bf16(std::vector<float> x) {
  for (float& v : x) v = to_float(to_bf16(v));
  return x;
}

std::unique_ptr<GuardedCopy> guarded(const std::vector<float>& x) {
  return std::make_unique<GuardedCopy>(test::stored(x, ElementType::bf16).bytes);
}

class Bf16Attention : public testing::TestWithParam<Bf16Unit> {
 protected:
  void SetUp() override {
    if (!has_unit(unit())) GTEST_SKIP() << "not on this machine";
  }
  static Bf16Unit unit() { return GetParam(); }
  static bool tiles() { return unit() == Bf16Unit::tiles; }
  static auto page_scores() { return tiles() ? amx_bf16::page_scores : avx512_bf16::page_scores; }
};
INSTANTIATE_TEST_SUITE_P(Units, Bf16Attention, testing::Values(Bf16Unit::tiles, Bf16Unit::vectors),
                         [](const testing::TestParamInfo<Bf16Unit>& unit) {
                           return unit.param == Bf16Unit::tiles ? "tiles" : "vectors";
                         });

class AmxAttention : public testing::Test {
 protected:
  void SetUp() override {
    if (!has_unit(Bf16Unit::tiles)) GTEST_SKIP() << "no AMX here";
  }
};

TEST(Bf16AttentionUnit, OtherHeadsTypesAndModesAreLeftToOthers) {
  for (const int dim : {8, 16, 48, 80, 288})
    EXPECT_FALSE(attention_unit(ElementType::bf16, dim, MatmulMode::library)) << dim;
  EXPECT_FALSE(attention_unit(ElementType::f32, 64, MatmulMode::library));
  EXPECT_FALSE(attention_unit(ElementType::bf16, 64, MatmulMode::own));
  EXPECT_FALSE(attention_unit(ElementType::bf16, 64, MatmulMode::library_f32));
}

TEST(Bf16AttentionUnit, TilesGoFirst) {
  const auto unit = attention_unit(ElementType::bf16, 64, MatmulMode::library);
  if (has_unit(Bf16Unit::tiles))
    EXPECT_EQ(unit, Bf16Unit::tiles);
  else
    EXPECT_EQ(unit.has_value(), has_unit(Bf16Unit::vectors));
}

// --- page scores ---

// Pages in blocks of their own, each ending at its last page.
struct Pages {
  std::vector<std::unique_ptr<GuardedCopy>> memory;
  std::vector<const std::byte*> blocks;
  PagesView view;

  Pages(int pages, int block_pages, int dim, PageSummary summary) {
    for (int p = 0; p < pages; p += block_pages) {
      const int here = std::min(block_pages, pages - p);
      memory.push_back(guarded(random_floats(static_cast<size_t>(here) * 2 * dim, 7 + p)));
      blocks.push_back(memory.back()->data());
    }
    view = {blocks.data(), 0, block_pages, dim, ElementType::bf16, summary};
  }
};

TEST_P(Bf16Attention, PageScoresAgreeWithTheReference) {
  for (const PageSummary summary : {PageSummary::extrema, PageSummary::moments}) {
    for (const int dim : {32, 64, 96, 128, 256}) {
      for (const int block_pages : {1, 3, 8, 16, 24, 32}) {
        const int count = 3 * block_pages + 77;
        const Pages pages(count, block_pages, dim, summary);
        for (const int heads : {1, 2, 3, 4, 5, 8, 16}) {
          auto q = random_floats(static_cast<size_t>(heads) * dim, 18);
          q[1] = 0;
          for (const int first : {0, 5, block_pages}) {
            std::vector<float> expected(static_cast<size_t>(heads) * (count + 1), 3.0f),
                got = expected;
            const auto scored = [&](auto score, std::vector<float>& to) {
              score(q.data(), heads, pages.view, first, count - first, to.data(), count + 1);
            };
            scored(reference().page_scores, expected);
            scored(page_scores(), got);
            expect_near(got, expected, (tiles() ? 4e-7f : 1e-5f) * largest_of(expected), 1e-6f);
          }
        }
      }
    }
  }
}

TEST_P(Bf16Attention, PageScoresOfQueriesThatAreNotFinite) {
  const int dim = 64, count = 20;
  const Pages pages(count, 8, dim, PageSummary::extrema);
  auto q = random_floats(3 * dim, 1);
  q[5] = INFINITY;
  q[dim + 9] = -INFINITY;
  q[2 * dim + 33] = NAN;
  std::vector<float> expected(3 * count), got(3 * count);
  reference().page_scores(q.data(), 3, pages.view, 0, count, expected.data(), count);
  page_scores()(q.data(), 3, pages.view, 0, count, got.data(), count);
  expect_near(got, expected, 1e-5f, 1e-5f);
}

// --- parts ---

struct Part {
  int dim, rows;
  std::vector<std::unique_ptr<GuardedCopy>> memory;
  std::vector<float> q;
  std::vector<AttendPiece> pieces;

  Part(int dim_, int rows_, uint32_t seed, float scale = 1.0f)
      : dim(dim_),
        rows(rows_),
        q(exact_in_bf16(random_floats(static_cast<size_t>(rows_) * dim_, seed, scale))) {}

  // Every piece ends where nothing may be read.
  void add(int position, int count, uint64_t who) {
    const auto seed = static_cast<uint32_t>(1000 + 2 * pieces.size());
    const size_t n = static_cast<size_t>(count) * dim;
    memory.push_back(guarded(random_floats(n, seed)));
    const void* keys = memory.back()->data();
    memory.push_back(guarded(random_floats(n, seed + 1)));
    pieces.push_back({keys, memory.back()->data(), position, count, who});
  }

  uint64_t everybody() const { return ~uint64_t{0} >> (64 - rows); }

  template <typename Kernel>
  std::vector<float> run(const Kernel& kernel) const {
    std::vector<float> out(static_cast<size_t>(rows) * (dim + 2) + 1, 7.0f);
    std::vector<AttendRow> all;
    for (int r = 0; r < rows; ++r) all.push_back({&q[r * dim], &out[r * (dim + 2)]});
    kernel(all.data());
    EXPECT_EQ(out.back(), 7.0f);
    return out;
  }
  std::vector<float> expected() const {
    return run([&](const AttendRow* all) {
      std::vector<float> scratch(attend_part_scratch);
      const int n = static_cast<int>(pieces.size());
      reference().attend_part(all, rows, dim, ElementType::bf16, pieces.data(), n, n, {}, kScale,
                              scratch.data());
    });
  }
  // `shared`: pieces; all of them.
  std::vector<float> got(Bf16Unit unit, int shared = -1) const {
    return run([&](const AttendRow* all) {
      const int n = static_cast<int>(pieces.size());
      const NextPieces next{pieces.data(), std::min(2, n)};
      if (unit == Bf16Unit::tiles) {
        const auto working = std::make_unique<amx_bf16::AttendMemory>();
        amx_bf16::attend_part(all, rows, dim, pieces.data(), n, next, kScale, *working);
      } else {
        std::vector<float> scratch(attend_part_scratch);
        avx512_bf16::attend_part(all, rows, dim, pieces.data(), n, shared < 0 ? n : shared, next,
                                 kScale, scratch.data());
      }
    });
  }

  // What got() must be near. The instruction gets weights rounded to bf16: those of the readable
  // definition are rounded, too, and one that comes to the other neighbour moves a sum by 2^-8 of
  // it.
  void expect_near_reference(Bf16Unit unit, int shared = -1) const {
    auto wanted = expected();
    const bool rounds = unit == Bf16Unit::vectors;
    if (rounds) round_weights(wanted);
    expect_near(got(unit, shared), wanted, rounds ? 0.02f : 5e-6f, 1e-5f);
  }

  // Weighted sums of values anew, with weights rounded.
  void round_weights(std::vector<float>& partials) const {
    for (int r = 0; r < rows; ++r) {
      float* out = &partials[r * (dim + 2)];
      std::vector<double> sum(dim);
      for (const AttendPiece& piece : pieces) {
        if (!(piece.rows >> r & 1)) continue;
        const auto* key = static_cast<const bf16*>(piece.keys);
        const auto* value = static_cast<const bf16*>(piece.values);
        for (int j = 0; j < piece.count; ++j, key += dim, value += dim) {
          double score = 0;
          for (int d = 0; d < dim; ++d) score += double{q[r * dim + d]} * to_float(key[d]);
          const float weight =
              to_float(to_bf16(std::exp(static_cast<float>(score) * kScale - out[dim])));
          for (int d = 0; d < dim; ++d) sum[d] += double{weight} * to_float(value[d]);
        }
      }
      std::copy(sum.begin(), sum.end(), out);
    }
  }

  static constexpr float kScale = 0.3f;
};

// Pieces of up to `most` tokens, each for a random set of rows, often for nobody.
Part random_part(int dim, int rows, int most, uint32_t seed) {
  Part part(dim, rows, seed);
  std::mt19937_64 generator(seed);
  for (int j = 0; j < kPartTokens;) {
    const int count =
        std::min(kPartTokens - j, 1 + static_cast<int>(generator() % static_cast<unsigned>(most)));
    const uint64_t who = generator() & part.everybody();
    if (who && generator() % 3) part.add(j, count, who);
    j += count;
  }
  return part;
}

TEST_P(Bf16Attention, PartsAgreeWithTheReference) {
  for (const int dim : {32, 64, 96, 128, 160, 256}) {
    for (int rows = 1; rows <= 64; rows = rows < 17 ? rows + 1 : 64 + (rows == 64)) {
      if (rows > 6 && dim > 64) continue;
      const Part part = random_part(dim, rows, rows % 2 ? 4 : 40, 100 + rows);
      part.expect_near_reference(unit());
    }
  }
}

TEST_P(Bf16Attention, DensePartsAgreeWithTheReference) {
  for (const int dim : {32, 64, 128}) {
    for (const int tokens : {1, 15, 16, 31, 33, 250, 256}) {
      Part part(dim, 4, 5);
      for (int j = 0; j < tokens; j += 32) part.add(j, std::min(32, tokens - j), 15);
      part.expect_near_reference(unit());
    }
  }
}

class VectorAttention : public testing::Test {
 protected:
  void SetUp() override {
    if (!has_unit(Bf16Unit::vectors)) GTEST_SKIP() << "no AVX512-BF16 here";
  }
};

TEST_F(VectorAttention, GivenTheSamePiecesARowDoesNotDependOnItsCompany) {
  const Part part = random_part(64, 11, 7, 21);
  const auto together = part.got(Bf16Unit::vectors);
  for (int r = 0; r < part.rows; ++r) {
    Part alone(64, 1, 1);
    std::copy_n(&part.q[r * 64], 64, alone.q.begin());
    for (AttendPiece piece : part.pieces) {
      if (!(piece.rows >> r & 1)) continue;
      piece.rows = 1;
      alone.pieces.push_back(piece);
    }
    const auto one = alone.got(Bf16Unit::vectors);
    EXPECT_SAME_BITS(
        std::vector<float>(one.begin(), one.end() - 1),
        std::vector<float>(together.begin() + r * 66, together.begin() + (r + 1) * 66));
  }
}

TEST_F(VectorAttention, QueriesAreRoundedToTheNearest) {
  Part part = random_part(96, 7, 9, 22);
  part.q = random_floats(part.q.size(), 23);
  const auto got = part.got(Bf16Unit::vectors);
  part.q = exact_in_bf16(part.q);
  EXPECT_SAME_BITS(got, part.got(Bf16Unit::vectors));
}

TEST_P(Bf16Attention, RowsThatAttendToEverythingDoNotDependOnTheirCompany) {
  Part many(64, 16, 9), alone(64, 1, 9);
  for (int j = 0; j < 250; j += 50) {
    many.add(j, 50, many.everybody());
    alone.add(j, 50, 1);
  }
  const auto all = many.got(unit());
  for (int r = 0; r < 16; ++r) {
    std::copy_n(&many.q[r * 64], 64, alone.q.begin());
    const auto one = alone.got(unit());
    EXPECT_SAME_BITS(std::vector<float>(one.begin(), one.end() - 1),
                     std::vector<float>(all.begin() + r * 66, all.begin() + (r + 1) * 66));
  }
}

// Sequences that continue apart, at the same positions.
TEST_P(Bf16Attention, RowsMayHaveTokensOfTheirOwn) {
  for (const int rows : {2, 7, 12}) {
    Part part(64, rows, 61);
    for (int j = 0; j < 96; j += 8) part.add(j, 8, part.everybody() & ~uint64_t(j % 3));
    const int shared = static_cast<int>(part.pieces.size());
    for (int r = 0; r + 1 < rows; ++r) part.add(96, 1 + 2 * r, uint64_t{1} << r);
    part.expect_near_reference(unit(), shared);
  }
}

// Whether tiles work on them; where not, results must be left alone.
bool pays(const Part& part) {
  bool done = false;
  const auto out = part.run([&](const AttendRow* all) {
    const int n = static_cast<int>(part.pieces.size());
    done = bf16_attend_part(Bf16Unit::tiles, all, part.rows, part.dim, part.pieces.data(), n, n, {},
                            1.0f, nullptr);
  });
  EXPECT_EQ(out[0] == 7.0f, !done);
  return done;
}

TEST_F(AmxAttention, IsForSomeRowsThatKeepMuchOfWhatAnyKeeps) {
  const auto part_of = [](int rows, int count, uint64_t who) {
    Part part(32, rows, 1);
    part.add(0, count, who);
    return part;
  };
  EXPECT_TRUE(pays(part_of(4, 256, 15)));
  EXPECT_TRUE(pays(part_of(3, 8, 1)));
  EXPECT_FALSE(pays(part_of(2, 256, 3)));
  EXPECT_FALSE(pays(part_of(16, 256, 7)));
  Part many(32, 3, 1);  // tokens, at the same positions
  for (int r = 0; r < 3; ++r) many.add(0, kPartTokens, uint64_t{1} << r);
  EXPECT_FALSE(pays(many));
}

TEST_F(AmxAttention, PagesAreScoredWhereItPays) {
  const auto scores = [](int heads, int block_pages) {
    const Pages pages(20, block_pages, 32, PageSummary::extrema);
    const auto q = random_floats(static_cast<size_t>(heads) * 32, 1);
    std::vector<float> got(static_cast<size_t>(heads) * 20, 7.0f);
    const bool done =
        bf16_page_scores(Bf16Unit::tiles, q.data(), heads, pages.view, 0, 20, got.data(), 20);
    EXPECT_EQ(got[0] == 7.0f, !done);
    return done;
  };
  EXPECT_FALSE(scores(1, 8));
  EXPECT_TRUE(scores(2, 8));
  EXPECT_FALSE(scores(2, 3));
  EXPECT_TRUE(scores(4, 3));
}

TEST_P(Bf16Attention, OneTokenIsItsValueAndNoTokenIsNothing) {
  Part part(64, 2, 41);
  part.add(37, 1, 1);
  const auto out = part.got(unit());
  const auto* value = static_cast<const bf16*>(part.pieces[0].values);
  for (int d = 0; d < 64; ++d) {
    EXPECT_EQ(out[d], to_float(value[d]));
    EXPECT_EQ(out[66 + d], 0.0f);
  }
  EXPECT_EQ(out[65], 1.0f);
  EXPECT_EQ(out[130], -INFINITY);
  EXPECT_EQ(out[131], 0.0f);
}

TEST_P(Bf16Attention, ScoresOfAnySizeAreNear) {
  // Weights down to nothing, and scores in the thousands.
  for (const float scale : {1e-20f, 1e-3f, 30.0f, 1e4f}) {
    Part part(64, 4, 3, scale);
    for (int j = 0; j < 256; j += 64) part.add(j, 64, 15);
    const auto got = part.got(unit()), expected = part.expected();
    for (int r = 0; r < 4; ++r) {
      std::vector<float> a(64), b(64);
      reference().merge_parts(&got[r * 66], 1, 66, 64, a.data());
      reference().merge_parts(&expected[r * 66], 1, 66, 64, b.data());
      // By the instruction weights are rounded.
      expect_near(a, b, tiles() ? std::max(1e-5f, 1e-6f * scale) : 0.02f, 0);
      EXPECT_NEAR(got[r * 66 + 64], expected[r * 66 + 64],
                  2e-6f * std::fabs(expected[r * 66 + 64]) + 1e-30f);
    }
  }
}

TEST_P(Bf16Attention, QueriesThatAreNotFiniteConcernTheirOwnRowsAlone) {
  Part part(64, 5, 8);
  part.add(0, 100, 31);
  const auto without = part.got(unit());
  part.q[64 + 3] = INFINITY;
  part.q[2 * 64 + 7] = NAN;
  const auto with = part.got(unit());
  for (const int r : {0, 3, 4})
    EXPECT_SAME_BITS(std::vector<float>(with.begin() + r * 66, with.begin() + (r + 1) * 66),
                     std::vector<float>(without.begin() + r * 66, without.begin() + (r + 1) * 66));
  for (const int r : {1, 2}) EXPECT_TRUE(std::isnan(with[r * 66])) << r;
}

}  // namespace
}  // namespace sol::kernels

#endif
