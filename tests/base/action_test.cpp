#include "sol/action.h"

#include "base/random.h"
#include "support.h"
#include "throws.h"

namespace sol {
namespace {

using test::throws;

TEST(Action, NamesAreTheDocumentedOnes) {
  EXPECT_EQ(to_string(Action{}), "k100-s100-q16");
  EXPECT_EQ(to_string(Action{0.5f, 0.7f, 8}), "k050-s070-q8");
  EXPECT_EQ(to_string(Action{0.125f, 1.0f, 16}), "k012.5-s100-q16");
  EXPECT_EQ(to_string(Action{0.02f, 0.3f, 3}), "k002-s030-q3");
  EXPECT_EQ(to_string(Action{0.005f, 0.29f, 2}), "k000.5-s029-q2");
}

TEST(Action, ParsesNames) {
  EXPECT_EQ(parse_action("k050-s070-q8"), (Action{0.5f, 0.7f, 8}));
  EXPECT_EQ(parse_action("k5-s7.5-q16"), (Action{0.05f, 0.075f, 16}));
  EXPECT_TRUE(parse_action("k100-s100-q16").dense());
}

TEST(Action, NamesAndActionsMapOneToOne) {
  Random random({.seed = 3});
  const auto draw = [&] { return static_cast<float>(1 + random.below(1 << 24)) * 0x1p-24f; };
  for (int i = 0; i < 2000; ++i) {
    const Action action{draw(), draw(), 2 + static_cast<int>(random.below(15))};
    ASSERT_EQ(parse_action(to_string(action)), action) << to_string(action);
  }
  for (int percent = 1; percent <= 100; ++percent) {
    const float share = static_cast<float>(percent) / 100.0f;
    EXPECT_EQ(to_string(Action{share, 1.0f, 16}).size(), std::string("k100-s100-q16").size());
  }
}

TEST(Action, FaultyPartsAreNamed) {
  EXPECT_THAT([] { parse_action(""); }, throws({"k050-s070-q8"}));
  EXPECT_THAT([] { parse_action("s050-k070-q8"); }, throws({"\"k...\"", "s050"}));
  EXPECT_THAT([] { parse_action("k050"); }, throws({"\"s...\""}));
  EXPECT_THAT([] { parse_action("k050-s070"); }, throws({"\"q...\""}));
  EXPECT_THAT([] { parse_action("k0-s070-q8"); }, throws({"k0", "more than 0"}));
  EXPECT_THAT([] { parse_action("k101-s070-q8"); }, throws({"k101", "at most 100"}));
  EXPECT_THAT([] { parse_action("k050-s200-q8"); }, throws({"s200"}));
  EXPECT_THAT([] { parse_action("kx-s070-q8"); }, throws({"kx", "percentage"}));
  EXPECT_THAT([] { parse_action("knan-s070-q8"); }, throws({"knan"}));
  EXPECT_THAT([] { parse_action("kinf-s070-q8"); }, throws({"kinf"}));
  EXPECT_THAT([] { parse_action("k1e-400-s070-q8"); }, throws({"k1e"}));
  EXPECT_THAT([] { parse_action("k050-s070-q1"); }, throws({"q1", "2 to 16"}));
  EXPECT_THAT([] { parse_action("k050-s070-q17"); }, throws({"q17"}));
  EXPECT_THAT([] { parse_action("k050-s070-q8.5"); }, throws({"q8.5"}));
  EXPECT_THAT([] { parse_action("k050-s070-q99999999999"); }, throws({"q99999999999"}));
  EXPECT_THAT([] { parse_action("k050-s070-q8-x"); }, throws({"nothing may follow"}));
}

}  // namespace
}  // namespace sol
