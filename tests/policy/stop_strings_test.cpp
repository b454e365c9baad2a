#include "policy/stop_strings.h"

#include "sol/error.h"
#include "support.h"

namespace sol {
namespace {

// All that is shown when the text comes in the given pieces.
std::string shown(std::vector<std::string> stops, const std::vector<std::string>& pieces) {
  StopStrings matcher(std::move(stops));
  std::string text;
  for (const std::string& piece : pieces) text += matcher.push(piece);
  return text + matcher.finish();
}

TEST(StopStrings, WithoutAnyEverythingIsShownAtOnce) {
  StopStrings matcher({});
  EXPECT_EQ(matcher.push("one"), "one");
  EXPECT_EQ(matcher.push(" two"), " two");
  EXPECT_EQ(matcher.finish(), "");
  EXPECT_FALSE(matcher.met());
}

TEST(StopStrings, SpanPieces) {
  EXPECT_EQ(shown({"END"}, {"text E", "N", "D more", "again"}), "text ");
  EXPECT_EQ(shown({"END"}, {"textEND"}), "text");
  EXPECT_EQ(shown({"\n\n"}, {"a\n", "b\n", "\nc"}), "a\nb");
}

TEST(StopStrings, EveryWayToCutTheTextShowsTheSame) {
  const std::string text = "aabaaabaaaab<|x|> rest";
  for (size_t i = 0; i <= text.size(); ++i)
    for (size_t j = i; j <= text.size(); ++j)
      EXPECT_EQ(
          shown({"aaaab", "<|x|>"}, {text.substr(0, i), text.substr(i, j - i), text.substr(j)}),
          "aabaaab")
          << i << " " << j;
}

TEST(StopStrings, OnlyWhatMayBeginOneIsHeldBack) {
  StopStrings matcher({"abc", "bd"});
  EXPECT_EQ(matcher.push("xab"), "x");
  EXPECT_EQ(matcher.push("x"), "abx");
  EXPECT_EQ(matcher.push("ab"), "");
  EXPECT_EQ(matcher.push("d"), "a");
  EXPECT_TRUE(matcher.met());
  EXPECT_EQ(matcher.push("more"), "");
  EXPECT_EQ(matcher.finish(), "");
}

TEST(StopStrings, TheEarliestWins) {
  EXPECT_EQ(shown({"world", "lo w"}, {"hello world"}), "hel");
}

TEST(StopStrings, AnUnfinishedOneIsShownAtTheEnd) {
  EXPECT_EQ(shown({"END"}, {"the E", "N"}), "the EN");
}

TEST(StopStrings, AnEmptyOneIsAnError) {
  EXPECT_THROW(StopStrings({"x", ""}), Error);
}

}  // namespace
}  // namespace sol
