#include "base/shown_text.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace sol {
namespace {

TEST(ShownText, IsCutBetweenCharacters) {
  EXPECT_EQ(shortened("short", 5), "short");
  EXPECT_EQ(shortened("longer", 5), "longe…");
  EXPECT_EQ(shortened("aäöü", 4), "aä…");  // the cut would fall into ö
  EXPECT_EQ(shortened("aäöü", 5), "aäö…");
  EXPECT_EQ(shortened("a\U0001F600b", 4), "a…");
  EXPECT_EQ(shortened("a\U0001F600b", 5), "a\U0001F600…");
  EXPECT_EQ(shortened(std::string(100, '\x80'), 50).size(), 47 + std::string("…").size());
  EXPECT_LT(shortened(std::string(1 << 20, 'x')).size(), 100u);
}

TEST(ShownText, SuggestsTheNearestName) {
  const std::vector<std::string> known{"temperature", "top_p", "max_tokens"};
  EXPECT_EQ(suggestion("temprature", known), "; did you mean temperature?");
  EXPECT_EQ(suggestion("max", known), "; did you mean max_tokens?");
  EXPECT_EQ(suggestion("completely_else", known), "");
  EXPECT_EQ(suggestion(std::string(1 << 20, 't'), known), "");
}

TEST(ShownText, EndsOfRangesLieInThem) {
  EXPECT_EQ(shown_range(0.3, 1), "0.3..1");
  EXPECT_EQ(shown_range(0.26561, 0.94149), "0.2657..0.9414");
  EXPECT_EQ(shown_range(0.5, 0.5), "0.5..0.5");
  for (const auto& [low, high] : std::vector<std::pair<double, double>>{
           {0.2656249999, 0.2656250001}, {1.0 / 3, 2.0 / 3}, {1.0 / 3, 1.0 / 3}, {0, 1e-9}}) {
    const std::string text = shown_range(low, high);
    const double first = std::strtod(text.c_str(), nullptr);
    const double last = std::strtod(text.c_str() + text.find("..") + 2, nullptr);
    EXPECT_TRUE(low <= first && first <= last && last <= high) << text;
  }
}

TEST(ShownNumbers, AreRanges) {
  EXPECT_EQ(shown_numbers({}), "");
  EXPECT_EQ(shown_numbers({7}), "7");
  EXPECT_EQ(shown_numbers({1, 2, 3, 5, 7, 8}), "1 to 3, 5, 7 to 8");
  std::vector<int64_t> odd;
  for (int64_t n = 1; n < 100; n += 2) odd.push_back(n);
  EXPECT_EQ(shown_numbers(odd), "1, 3, 5, 7, 9, 11, 13, 15, …");
}

}  // namespace
}  // namespace sol
