#include "evaluation/behaviour.h"

#include <gtest/gtest.h>

#include "fake_model.h"
#include "policy/policies.h"
#include "sol/error.h"

namespace sol {
namespace {

using test::fake_blocks;
using test::FakeModel;
using test::first_blocks;
using test::small_protocol;

// Dense on even tokens and at the first two steps, the cheapest action elsewhere.
class EvenSpender final : public Policy {
 public:
  std::string name() const override { return "even"; }
  const ActionSpace& space() const override { return space_; }
  std::unique_ptr<PolicyState> begin(const Budget&, int, const EpisodeId&) const override {
    return std::make_unique<PolicyState>();
  }
  void next(std::span<PolicyStep> steps) const override {
    for (PolicyStep& step : steps) {
      const bool dense = step.observation->token % 2 == 0 || step.observation->step <= 2;
      step.action = dense ? space_.dense_index() : 0;
    }
  }

 private:
  ActionSpace space_{{0.1f, 1.0f}, {0.5f, 1.0f}, {4, 16}};
};

struct BehaviourTest : testing::Test {
  FakeModel model;
  ProtocolOptions options = small_protocol();
  BlockDataset data = fake_blocks(20, options);
  BlockEvaluator evaluator{model, data, first_blocks(20), options};
  EvenSpender policy;
  std::vector<TokenKind> kinds;
  void SetUp() override {
    for (int id = 0; id < 50; ++id)
      kinds.push_back(id % 2 == 0 ? TokenKind::word_start : TokenKind::number);
  }
  Behaviour run() { return run_behaviour(evaluator, data, policy, {Budget{}}, kinds); }
};

TEST_F(BehaviourTest, GroupsByKindOfTheCurrentToken) {
  const Behaviour behaviour = run();
  ASSERT_EQ(behaviour.by_kind.size(), 2u);  // kinds without a step are left out
  const StepGroup &even = behaviour.by_kind[0], &odd = behaviour.by_kind[1];
  EXPECT_EQ(even.label, "start of a word");
  EXPECT_EQ(odd.label, "number");
  EXPECT_EQ(even.steps + odd.steps, 20 * 8);
  EXPECT_EQ(even.spent, (Budget{1.0f, 1.0f, 1.0f}));
  EXPECT_DOUBLE_EQ(even.net_keep, 1.0);
  EXPECT_LT(odd.net_keep, 0.7);
  EXPECT_GT(odd.net_keep, (0.1 + 0.5 + 0.25) / 3);  // first steps are dense
  EXPECT_GT(odd.increase, even.increase);           // what is dropped costs, in the fake model
}

TEST_F(BehaviourTest, GroupsByStep) {
  const Behaviour behaviour = run();
  ASSERT_EQ(behaviour.by_step.size(), 8u);
  EXPECT_EQ(behaviour.by_step[0].label, "1");
  EXPECT_DOUBLE_EQ(behaviour.by_step[1].net_keep, 1.0);
  EXPECT_LT(behaviour.by_step[2].net_keep, 1.0);
  for (const StepGroup& group : behaviour.by_step) EXPECT_EQ(group.steps, 20);
}

TEST_F(BehaviourTest, TenthsAscendInSurprisal) {
  const Behaviour behaviour = run();
  ASSERT_EQ(behaviour.by_surprisal.size(), 10u);
  int64_t steps = 0;
  for (size_t i = 0; i < 10; ++i) {
    steps += behaviour.by_surprisal[i].steps;
    if (i > 0) {
      EXPECT_GE(behaviour.by_surprisal[i].surprisal, behaviour.by_surprisal[i - 1].surprisal);
    }
  }
  EXPECT_EQ(steps, 20 * 8);
  // The surprisal of an episode's first token is not known: it is the prefix's.
  steps = 0;
  for (const StepGroup& group : behaviour.by_previous) steps += group.steps;
  EXPECT_EQ(steps, 20 * 7);
  EXPECT_GE(behaviour.rank_correlation, -1);
  EXPECT_LE(behaviour.rank_correlation, 1);
}

TEST_F(BehaviourTest, APolicyThatAlwaysDoesTheSameCorrelatesWithNothing) {
  const auto constant = make_constant_policy({0.5f, 0.5f, 8});
  const Behaviour behaviour = run_behaviour(evaluator, data, *constant, {Budget{}}, kinds);
  EXPECT_EQ(behaviour.rank_correlation, 0);
}

TEST_F(BehaviourTest, RefusesWhatCannotBeRun) {
  EXPECT_THROW(run_behaviour(evaluator, data, policy, {}, kinds), Error);
  kinds.resize(10);
  EXPECT_THROW(run(), Error);
}

TEST(TokenKinds, AreReadFromTheText) {
  EXPECT_EQ(kind_of(" the"), TokenKind::word_start);
  EXPECT_EQ(kind_of("ing"), TokenKind::word_inside);
  EXPECT_EQ(kind_of(" é"), TokenKind::word_start);
  EXPECT_EQ(kind_of("19"), TokenKind::number);
  EXPECT_EQ(kind_of(" 7"), TokenKind::number);
  EXPECT_EQ(kind_of(","), TokenKind::punctuation);
  EXPECT_EQ(kind_of(" ("), TokenKind::punctuation);
  EXPECT_EQ(kind_of(".\n"), TokenKind::line_break);
  EXPECT_EQ(kind_of(" "), TokenKind::other);
  EXPECT_EQ(kind_of(""), TokenKind::other);
}

}  // namespace
}  // namespace sol
