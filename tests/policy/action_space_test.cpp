#include "sol/action_space.h"

#include <set>

#include "policy/action_json.h"
#include "support_policy.h"

namespace sol {
namespace {

using test::error_of;
using ::testing::HasSubstr;

TEST(ActionSpace, NotationGivesFloat32LevelsInAscendingOrder) {
  const ActionSpace space =
      ActionSpace::from_notation({1.0, 0.1, 0.55}, {"s100", "s60", "s62.5"}, {"q16", "q5"});
  EXPECT_EQ(space.kappa(), (std::vector<float>{0.1f, 0.55f, 1.0f}));
  EXPECT_EQ(space.rho(), (std::vector<float>{0.6f, 0.625f, 1.0f}));
  EXPECT_EQ(space.bits(), (std::vector<int>{5, 16}));
  EXPECT_EQ(space.prune_notation(), (std::vector<std::string>{"s60", "s62.5", "s100"}));
  EXPECT_EQ(space.quant_notation(), (std::vector<std::string>{"q5", "q16"}));
  EXPECT_EQ(space.levels(Axis::eta), (std::vector<float>{0.3125f, 1.0f}));
}

TEST(ActionSpace, ThePapersLargestHas1560Actions) {
  std::vector<double> keep;
  std::vector<std::string> prune, quant;
  for (int k = 1; k <= 10; ++k) keep.push_back(k / 10.0);
  for (int s = 40; s <= 100; s += 5) prune.push_back("s" + std::to_string(s));
  for (int q = 5; q <= 16; ++q) quant.push_back("q" + std::to_string(q));
  const ActionSpace space = ActionSpace::from_notation(keep, prune, quant);
  EXPECT_EQ(space.size(), 1560);
  EXPECT_EQ(space.prune_notation(), prune);
  EXPECT_EQ(space.quant_notation(), quant);
}

TEST(ActionSpace, KappaIsSlowestAndBitsAreFastest) {
  const ActionSpace space({0.1f, 1.0f}, {0.4f, 0.6f, 1.0f}, {5, 7, 10, 16});
  EXPECT_EQ(space.size(), 24);
  EXPECT_EQ(space.action(0), (Action{0.1f, 0.4f, 5}));
  EXPECT_EQ(space.action(1), (Action{0.1f, 0.4f, 7}));
  EXPECT_EQ(space.action(4), (Action{0.1f, 0.6f, 5}));
  EXPECT_EQ(space.action(12), (Action{1.0f, 0.4f, 5}));
  EXPECT_EQ(space.dense_index(), 23);
  EXPECT_TRUE(space.action(23).dense());
  EXPECT_EQ(space.index(1, 2, 3), 23);
}

TEST(SequenceOptions, AsJsonSayHowPagesAreChosen) {
  const SequenceOptions options{.page_size = 8, .sinks = 3, .window = 1, .force_sinks = false};
  EXPECT_EQ(to_text(to_json(options)),
            R"({"page_size":8,"sinks":3,"window":1,"force_sinks":false})");
}

TEST(ActionSpace, AgreesWithTheReferencesNumbering) {
  const Json spec = read_json(test::test_data() / "golden/sol/train_step.json")["spec"];
  const ActionSpace space = ActionSpace::from_notation(
      {0.1, 0.4, 0.7, 1.0}, {"s40", "s60", "s80", "s100"}, {"q5", "q7", "q10", "q16"});
  ASSERT_EQ(space.size(), static_cast<int>(spec["token_keep"].size()));
  EXPECT_EQ(space.dense_index(), spec["dense_idx"].get<int>());
  for (int i = 0; i < space.size(); ++i) {
    const auto at = static_cast<size_t>(i);
    EXPECT_EQ(space.action(i).kappa, spec["token_keep"][at].get<float>());
    EXPECT_EQ(space.action(i).rho, spec["prune_keep"][at].get<float>());
    EXPECT_EQ(space.action(i).bits, spec["q_bits"][at].get<int>());
  }
}

RC_GTEST_PROP(ActionSpaceProperty, IndexAndJsonRoundTrip, ()) {
  const auto shares =
      rc::gen::map(rc::gen::nonEmpty<std::set<int>>(
                       rc::gen::container<std::set<int>>(rc::gen::inRange(1, 1001))),
                   [](const std::set<int>& thousandths) {
                     std::vector<float> levels;
                     for (const int n : thousandths)
                       levels.push_back(static_cast<float>(n / 1000.0));
                     return levels;
                   });
  const auto bit_set =
      *rc::gen::nonEmpty<std::set<int>>(rc::gen::container<std::set<int>>(rc::gen::inRange(2, 17)));
  const ActionSpace space(*shares, *shares, {bit_set.begin(), bit_set.end()});
  for (int i = 0; i < space.size(); ++i) RC_ASSERT(space.index(space.action(i)) == i);
  RC_ASSERT(action_space_from_json(action_space_to_json(space), "test") == space);
  RC_ASSERT(action_space_from_json(Json::parse(action_space_to_json(space).dump()), "test") ==
            space);
}

TEST(ActionSpace, JsonIsReadable) {
  EXPECT_EQ(action_space_to_json(test::two_levels()).dump(),
            R"({"keep":[0.1,1.0],"prune":["s60","s100"],"quant":["q5","q16"]})");
}

TEST(ActionSpace, NetKeepRateIsTheMeanOverTheAxesThatAreOn) {
  const Budget budget{0.2f, 0.4f, 0.9f};
  EXPECT_NEAR(test::two_levels().net_keep_rate(budget), 0.5, 1e-6);
  EXPECT_NEAR(ActionSpace({0.1f, 1.0f}, {1.0f}, {16}).net_keep_rate(budget), 0.2, 1e-6);
  EXPECT_EQ(ActionSpace({1.0f}, {1.0f}, {16}).net_keep_rate(budget), 1.0);
}

TEST(ActionSpace, AnAxisThatIsOffHasItsLevelAsItsBudget) {
  const ActionSpace space({0.1f, 1.0f}, {0.5f}, {8});
  EXPECT_TRUE(space.on(Axis::kappa));
  EXPECT_FALSE(space.on(Axis::rho));
  EXPECT_EQ(space.clamp_off_axes({0.3f, 0.9f, 0.1f}), (Budget{0.3f, 0.5f, 0.5f}));
}

TEST(ActionSpace, RejectsTwoLevelsOfOneNameOrValue) {
  EXPECT_THAT(error_of([] {
                ActionSpace::from_notation({0.1, 1.0}, {"s60", "s60"}, {"q16"});
              }),
              HasSubstr("\"s60\" and \"s60\""));
  EXPECT_THAT(error_of([] {
                ActionSpace::from_notation({1.0}, {"s060", "s60.0"}, {"q16"});
              }),
              HasSubstr("\"s060\" and \"s60.0\""));
  EXPECT_THAT(error_of([] {
                ActionSpace::from_notation({1.0}, {"s100"}, {"q5", "q05"});
              }),
              HasSubstr("\"q5\" and \"q05\""));
  EXPECT_THAT(error_of([] {
                ActionSpace::from_notation({0.5, 0.5}, {"s100"}, {"q16"});
              }),
              HasSubstr("\"0.5\" and \"0.5\""));
  EXPECT_THAT(error_of([] { ActionSpace({0.5f, 0.5f}, {1.0f}, {16}); }), HasSubstr("twice"));
}

TEST(ActionSpace, RejectsWhatIsNoLevel) {
  const std::vector<std::vector<std::string>> bad_prune{
      {}, {"s0"}, {"s101"}, {"60"}, {"s"}, {"s6x"}, {"q5"}, {"s-5"}, {"snan"}, {""}, {"s1e1"}};
  for (const auto& prune : bad_prune)
    EXPECT_THROW(ActionSpace::from_notation({1.0}, prune, {"q16"}), Error)
        << (prune.empty() ? "no level" : prune[0]);
  for (const char* quant : {"q1", "q17", "q5.5", "5", "q", "s5", "q99999999999999999999"})
    EXPECT_THROW(ActionSpace::from_notation({1.0}, {"s100"}, {quant}), Error) << quant;
  for (const double keep : {0.0, -0.1, 1.01, std::nan(""), 1e300})
    EXPECT_THROW(ActionSpace::from_notation({keep}, {"s100"}, {"q16"}), Error) << keep;
  // As it was written, not as single precision makes it.
  EXPECT_THAT(error_of([] {
                ActionSpace::from_notation({1e-300, 1.0}, {"s100"}, {"q16"});
              }),
              HasSubstr("kappa level 1e-300 is smaller"));
  EXPECT_THAT(error_of([] { ActionSpace::from_notation({1.0}, {"s101"}, {"q16"}); }),
              HasSubstr("rho level s101 must be"));
  EXPECT_THROW(ActionSpace({}, {1.0f}, {16}), Error);
  EXPECT_THROW(ActionSpace({1.0f, 0.5f}, {1.0f}, {16}), Error);
  EXPECT_THROW(ActionSpace({1.0f}, {1.0f}, {16, 5}), Error);
  EXPECT_THROW(ActionSpace({1.0f}, {1.0f}, {}), Error);
}

TEST(ActionSpace, RejectsActionsThatItDoesNotHold) {
  const ActionSpace space = test::two_levels();
  EXPECT_THROW(space.action(8), Error);
  EXPECT_THROW(space.action(-1), Error);
  EXPECT_THROW(space.index(2, 0, 0), Error);
  EXPECT_THAT(error_of([&] { space.index({0.5f, 0.6f, 5}); }), HasSubstr("k050-s060-q5"));
}

TEST(ActionSpace, JsonErrorsNameTheDocument) {
  for (const char* text : {"[]", "{}", R"({"keep":1})", R"({"keep":["a"],"prune":[],"quant":[]})",
                           R"({"keep":[1],"prune":[1],"quant":["q16"]})",
                           R"({"keep":[1],"prune":["s100"],"quant":["q99"]})"})
    EXPECT_THAT(error_of([&] { action_space_from_json(Json::parse(text), "doc.json"); }),
                HasSubstr("doc.json"))
        << text;
}

}  // namespace
}  // namespace sol
