#include "kernels/select.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>

#include "kernel_cases.h"

namespace sol::kernels {

// For gtest's messages and comparisons.
static bool operator==(const RowRun& a, const RowRun& b) {
  return a.begin == b.begin && a.end == b.end && a.rows == b.rows;
}
static void PrintTo(const RowRun& r, std::ostream* out) {
  *out << "[" << r.begin << ", " << r.end << ") rows " << r.rows;
}

namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(KeepCount, IsTheCeilingOfTheFloat32Product) {
  EXPECT_EQ(keep_count(0.5f, 4), 2);
  EXPECT_EQ(keep_count(0.5f, 5), 3);
  EXPECT_EQ(keep_count(1.0f, 2112), 2112);
  EXPECT_EQ(keep_count(0.0f, 10), 1);
  EXPECT_EQ(keep_count(-1.0f, 10), 1);
  EXPECT_EQ(keep_count(2.0f, 10), 10);
  EXPECT_EQ(keep_count(std::numeric_limits<float>::quiet_NaN(), 10), 1);
  EXPECT_EQ(keep_count(std::numeric_limits<float>::infinity(), 10), 10);
  EXPECT_EQ(keep_count(0.3f, 1), 1);
}

class Largest : public test::EachIsa {
 protected:
  std::vector<int> largest(const std::vector<float>& x, int keep, bool magnitude,
                           bool keep_ties = false) const {
    return listed(fast(), x, keep, magnitude, keep_ties);
  }
  std::vector<int> listed(const Kernels& k, const std::vector<float>& x, int keep, bool magnitude,
                          bool keep_ties) const {
    const int n = static_cast<int>(x.size());
    std::vector<uint64_t> marks((n + 63) / 64, ~uint64_t{0});
    std::vector<int32_t> scratch(mark_largest_scratch(n));
    k.mark_largest(x.data(), n, keep, magnitude, keep_ties, marks.data(), scratch.data());
    std::vector<int> out;
    for (int i = 0; i < static_cast<int>(marks.size()) * 64; ++i)
      if (marks[i / 64] >> (i % 64) & 1) out.push_back(i);
    return out;
  }
};
SOL_FOR_EACH_ISA(Largest);

std::vector<int> by_sorting(const std::vector<float>& x, int keep, bool magnitude) {
  std::vector<int> order(x.size());
  std::iota(order.begin(), order.end(), 0);
  const auto key = [&](int i) { return magnitude ? std::fabs(x[i]) : x[i]; };
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return key(a) > key(b); });
  order.resize(keep);
  std::sort(order.begin(), order.end());
  return order;
}

TEST_P(Largest, AgreeWithAStableSort) {
  std::mt19937 generator(1);
  for (int round = 0; round < 300; ++round) {
    const int n = 1 + static_cast<int>(generator() % 200);
    // Few distinct values, so that there are many ties, of both signs.
    std::uniform_int_distribution<int> values(-5, 5);
    std::vector<float> x(n);
    for (float& v : x) v = 0.5f * static_cast<float>(values(generator));
    const int keep = 1 + static_cast<int>(generator() % n);
    EXPECT_EQ(largest(x, keep, true), by_sorting(x, keep, true));
    EXPECT_EQ(largest(x, keep, false), by_sorting(x, keep, false));
    float lowest = INFINITY;
    for (const int i : by_sorting(x, keep, false)) lowest = std::min(lowest, x[i]);
    EXPECT_EQ(static_cast<int>(largest(x, keep, false, true).size()),
              std::count_if(x.begin(), x.end(), [&](float v) { return v >= lowest; }));
  }
}

// Every kind of distribution, long and short, against the plain definition.
TEST_P(Largest, AgreeWithTheReference) {
  std::mt19937 generator(2);
  std::normal_distribution<float> normal;
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float special[] = {nan, -nan, INFINITY, -INFINITY, 0.0f, -0.0f, 1e-40f, 3e38f, -3e38f};
  for (int round = 0; round < 200; ++round) {
    const int n = 1 + static_cast<int>(generator() % (round % 4 ? 300 : 5000));
    std::vector<float> x(n);
    for (float& v : x) {
      switch (round % 5) {
        case 0:
          v = normal(generator);
          break;
        case 1:
          v = std::exp(20 * normal(generator));  // everything in one corner
          break;
        case 2:
          v = normal(generator);
          if (generator() % 8 == 0) v = special[generator() % std::size(special)];
          break;
        case 3:
          v = special[generator() % std::size(special)];
          break;
        default:
          v = 5.0f + 1e-6f * static_cast<float>(generator() % 7);
      }
    }
    for (const int keep : {1, n, 1 + static_cast<int>(generator() % n), (n + 4) / 5}) {
      for (const bool magnitude : {false, true})
        for (const bool ties : {false, true})
          EXPECT_EQ(listed(fast(), x, keep, magnitude, ties),
                    listed(reference(), x, keep, magnitude, ties))
              << "round " << round << ", " << keep << " of " << n;
    }
  }
}

TEST_P(Largest, ZerosOfBothSignsTie) {
  const std::vector<float> x{0.0f, -0.0f, 0.0f, -0.0f};
  EXPECT_THAT(largest(x, 2, false), ElementsAre(0, 1));
  EXPECT_EQ(largest(x, 2, false, true).size(), 4u);
  EXPECT_THAT(largest(x, 3, true), ElementsAre(0, 1, 2));
}

TEST_P(Largest, NotANumberNeverBreaksTheCount) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> x{nan, 1.0f, -std::numeric_limits<float>::infinity(), nan, 2.0f};
  EXPECT_THAT(largest(x, 3, false), ElementsAre(1, 2, 4));  // a page without a score comes last
  EXPECT_THAT(largest(x, 4, false), ElementsAre(0, 1, 2, 4));
  for (int keep = 1; keep <= 5; ++keep)
    EXPECT_EQ(static_cast<int>(largest(x, keep, true).size()), keep);
}

TEST(TopChannels, AreListedInOrder) {
  std::vector<int> got;
  std::vector<float> x(150, 0.0f);
  x[0] = -3;
  x[63] = 2;
  x[64] = -2;
  x[149] = 1;
  top_channels(x.data(), 150, 4, got);
  EXPECT_THAT(got, ElementsAre(0, 63, 64, 149));
  top_channels(x.data(), 150, 5, got);
  EXPECT_THAT(got, ElementsAre(0, 1, 63, 64, 149));
}

using R = RowRun;

// Runs of one row that selects `pages`, its forced pages included.
std::vector<RowRun> runs(const std::vector<int>& pages, int n, const PageRule& rule) {
  const int all = page_count(n, rule.page_size);
  std::vector<float> score(all, 0.0f);
  for (const int p : pages) score[p] = 1.0f;
  std::vector<uint64_t> marks(page_words(all));
  if (!pages.empty())
    select_pages(score.data(), n, static_cast<int>(pages.size()), rule, marks.data());
  const RowPages row{marks.data(), n};
  std::vector<RowRun> out;
  row_runs({&row, 1}, 1, rule, 0, n, out);
  return out;
}

TEST(RowRuns, WithoutForcedTokens) {
  const PageRule rule{4, 2, 3, false};
  EXPECT_THAT(runs({0, 1, 3}, 15, rule), ElementsAre(R{0, 8, 1}, R{12, 15, 1}));
  EXPECT_THAT(runs({2}, 15, rule), ElementsAre(R{8, 12, 1}));
  EXPECT_THAT(runs({}, 15, rule), IsEmpty());
}

TEST(RowRuns, SinksAndWindowAreAdded) {
  const PageRule rule{4, 2, 3, true};  // the first 2 and the last 4
  EXPECT_THAT(runs({1}, 15, rule), ElementsAre(R{0, 2, 1}, R{4, 8, 1}, R{11, 15, 1}));
  EXPECT_THAT(runs({0, 2, 3}, 15, rule), ElementsAre(R{0, 4, 1}, R{8, 15, 1}));
  EXPECT_THAT(runs({3}, 15, rule), ElementsAre(R{0, 2, 1}, R{11, 15, 1}));
  EXPECT_THAT(runs({0, 1, 2, 3}, 15, rule), ElementsAre(R{0, 15, 1}));
}

TEST(RowRuns, ShortSequencesAreAttendedToWhole) {
  EXPECT_THAT(runs({0}, 3, {16, 4, 16, true}), ElementsAre(R{0, 3, 1}));
  EXPECT_THAT(runs({0}, 1, {4, 0, 0, true}), ElementsAre(R{0, 1, 1}));
  EXPECT_THAT(runs({0}, 6, {4, 3, 2, true}), ElementsAre(R{0, 6, 1}));
}

TEST(RowRuns, AgreeWithTokenByTokenReasoning) {
  std::mt19937 generator(2);
  for (int round = 0; round < 500; ++round) {
    const int longest = 1 + static_cast<int>(generator() % 400);
    const PageRule rule{1 + static_cast<int>(generator() % (round % 3 ? 9 : 300)),
                        static_cast<int>(generator() % 7), static_cast<int>(generator() % 20),
                        generator() % 2 == 0};
    const int count = 1 + static_cast<int>(generator() % 6);
    const int shortest = 1 + static_cast<int>(generator() % longest);
    std::vector<RowPages> rows;
    std::vector<std::vector<uint64_t>> marks(count);
    std::vector<uint64_t> expected(shortest, 0);
    const uint64_t members = 1 + generator() % ((1u << count) - 1);
    for (int r = 0; r < count; ++r) {
      const int n = shortest + static_cast<int>(generator() % (longest - shortest + 1));
      const int pages = page_count(n, rule.page_size);
      std::vector<float> score(pages);
      for (float& v : score) v = static_cast<float>(generator() % 1000);
      marks[r].resize(page_words(pages));
      const int keep = 1 + static_cast<int>(generator() % pages);
      const bool everything = generator() % 4 == 0;
      select_pages(score.data(), n, keep, rule, marks[r].data());
      rows.push_back({everything ? nullptr : marks[r].data(), n});
      if (!(members >> r & 1)) continue;
      float last = -1;
      std::vector<float> sorted = score;
      std::sort(sorted.rbegin(), sorted.rend());
      last = sorted[keep - 1];
      int ties = keep - static_cast<int>(std::count_if(score.begin(), score.end(),
                                                       [&](float v) { return v > last; }));
      for (int p = 0; p < pages; ++p) {
        const bool selected =
            score[p] > last || (score[p] == last && (!rule.force_sinks || ties-- > 0));
        for (int j = p * rule.page_size; j < std::min(shortest, (p + 1) * rule.page_size); ++j) {
          const bool forced = rule.force_sinks && (j < rule.sinks || j >= n - (rule.window + 1));
          if (everything || selected || forced) expected[j] |= uint64_t{1} << r;
        }
      }
    }
    const int begin = static_cast<int>(generator() % shortest);
    std::vector<RowRun> found;
    row_runs(rows, members, rule, begin, shortest, found);
    std::vector<uint64_t> got(shortest, 0);
    int last = begin;
    for (const R& r : found) {
      EXPECT_LT(r.begin, r.end);
      EXPECT_GE(r.begin, last);
      last = r.end;
      for (int j = r.begin; j < r.end; ++j) got.at(j) = r.rows;
    }
    std::fill(expected.begin(), expected.begin() + begin, 0);
    EXPECT_EQ(got, expected) << "round " << round;
    for (size_t i = 1; i < found.size(); ++i)
      EXPECT_FALSE(found[i].begin == found[i - 1].end && found[i].rows == found[i - 1].rows);
  }
}

}  // namespace
}  // namespace sol::kernels
