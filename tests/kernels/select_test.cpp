#include "kernels/select.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>

namespace sol::kernels {

// For gtest's messages and comparisons.
static bool operator==(const TokenRange& a, const TokenRange& b) {
  return a.begin == b.begin && a.end == b.end;
}
static void PrintTo(const TokenRange& r, std::ostream* out) {
  *out << "[" << r.begin << ", " << r.end << ")";
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

std::vector<int> by_sorting(const std::vector<float>& x, int keep, bool magnitude) {
  std::vector<int> order(x.size());
  std::iota(order.begin(), order.end(), 0);
  const auto key = [&](int i) { return magnitude ? std::fabs(x[i]) : x[i]; };
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return key(a) > key(b); });
  order.resize(keep);
  std::sort(order.begin(), order.end());
  return order;
}

TEST(Select, AgreesWithAStableSort) {
  std::mt19937 generator(1);
  for (int round = 0; round < 300; ++round) {
    const int n = 1 + static_cast<int>(generator() % 200);
    // Few distinct values, so that there are many ties, of both signs.
    std::uniform_int_distribution<int> values(-5, 5);
    std::vector<float> x(n);
    for (float& v : x) v = 0.5f * static_cast<float>(values(generator));
    const int keep = 1 + static_cast<int>(generator() % n);
    std::vector<int> got;
    top_channels(x.data(), n, keep, got);
    EXPECT_EQ(got, by_sorting(x, keep, true));
    top_pages(x.data(), n, keep, false, got);
    EXPECT_EQ(got, by_sorting(x, keep, false));
    top_pages(x.data(), n, keep, true, got);
    const float last = x[by_sorting(x, keep, false).front()];
    float lowest = last;
    for (const int i : by_sorting(x, keep, false)) lowest = std::min(lowest, x[i]);
    EXPECT_EQ(static_cast<int>(got.size()),
              std::count_if(x.begin(), x.end(), [&](float v) { return v >= lowest; }));
  }
}

TEST(Select, ZerosOfBothSignsTie) {
  const std::vector<float> x{0.0f, -0.0f, 0.0f, -0.0f};
  std::vector<int> got;
  top_pages(x.data(), 4, 2, false, got);
  EXPECT_THAT(got, ElementsAre(0, 1));
  top_pages(x.data(), 4, 2, true, got);
  EXPECT_EQ(got.size(), 4u);
  top_channels(x.data(), 4, 3, got);
  EXPECT_THAT(got, ElementsAre(0, 1, 2));
}

TEST(Select, NotANumberNeverBreaksTheCount) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> x{nan, 1.0f, -std::numeric_limits<float>::infinity(), nan, 2.0f};
  std::vector<int> got;
  top_pages(x.data(), 5, 3, false, got);
  EXPECT_THAT(got, ElementsAre(1, 2, 4));  // a page without a score comes last
  top_pages(x.data(), 5, 4, false, got);
  EXPECT_THAT(got, ElementsAre(0, 1, 2, 4));
  for (int keep = 1; keep <= 5; ++keep) {
    top_channels(x.data(), 5, keep, got);
    EXPECT_EQ(static_cast<int>(got.size()), keep);
  }
}

std::vector<TokenRange> ranges(std::vector<int> pages, int n, PageRule rule) {
  std::vector<TokenRange> out;
  token_ranges(pages, n, rule, out);
  return out;
}
using R = TokenRange;

TEST(TokenRanges, WithoutForcedTokens) {
  const PageRule rule{4, 2, 3, false};
  EXPECT_THAT(ranges({0, 1, 3}, 15, rule), ElementsAre(R{0, 8}, R{12, 15}));
  EXPECT_THAT(ranges({2}, 15, rule), ElementsAre(R{8, 12}));
  EXPECT_THAT(ranges({}, 15, rule), IsEmpty());
}

TEST(TokenRanges, SinksAndWindowAreAdded) {
  const PageRule rule{4, 2, 3, true};  // the first 2 and the last 4
  EXPECT_THAT(ranges({}, 15, rule), ElementsAre(R{0, 2}, R{11, 15}));
  EXPECT_THAT(ranges({1}, 15, rule), ElementsAre(R{0, 2}, R{4, 8}, R{11, 15}));
  EXPECT_THAT(ranges({0, 2, 3}, 15, rule), ElementsAre(R{0, 4}, R{8, 15}));
  EXPECT_THAT(ranges({3}, 15, rule), ElementsAre(R{0, 2}, R{11, 15}));
  EXPECT_THAT(ranges({0, 1, 2, 3}, 15, rule), ElementsAre(R{0, 15}));
}

TEST(TokenRanges, ShortSequencesAreAttendedToWhole) {
  EXPECT_THAT(ranges({0}, 3, {16, 4, 16, true}), ElementsAre(R{0, 3}));
  EXPECT_THAT(ranges({0}, 1, {4, 0, 0, true}), ElementsAre(R{0, 1}));
  EXPECT_THAT(ranges({}, 6, {4, 0, 0, true}), ElementsAre(R{5, 6}));
  EXPECT_THAT(ranges({}, 6, {4, 3, 2, true}), ElementsAre(R{0, 6}));
}

TEST(TokenRanges, AgreeWithTokenByTokenReasoning) {
  std::mt19937 generator(2);
  for (int round = 0; round < 500; ++round) {
    const int n = 1 + static_cast<int>(generator() % 90);
    const PageRule rule{1 + static_cast<int>(generator() % 9), static_cast<int>(generator() % 7),
                        static_cast<int>(generator() % 20), generator() % 2 == 0};
    std::vector<int> pages;
    std::vector<bool> attended(n, false);
    for (int p = 0; p * rule.page_size < n; ++p) {
      if (generator() % 3) continue;
      pages.push_back(p);
      for (int j = p * rule.page_size; j < std::min(n, (p + 1) * rule.page_size); ++j)
        attended[j] = true;
    }
    for (int j = 0; j < n && rule.force_sinks; ++j)
      if (j < rule.sinks || j >= n - (rule.window + 1)) attended[j] = true;
    std::vector<bool> got(n, false);
    int last = -1;
    for (const R& r : ranges(pages, n, rule)) {
      EXPECT_LT(r.begin, r.end);
      EXPECT_GT(r.begin, last);  // neither overlapping nor touching
      last = r.end;
      for (int j = r.begin; j < r.end; ++j) got.at(j) = true;
    }
    EXPECT_EQ(got, attended);
  }
}

}  // namespace
}  // namespace sol::kernels
