#include "evaluation/behaviour.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "../model/tokenizer_files.h"
#include "fake_model.h"
#include "policy/policies.h"
#include "sol/error.h"

namespace sol {
namespace {

using test::fake_blocks;
using test::FakeModel;
using test::first_blocks;
using test::small_protocol;

// Dense on even tokens and at the first two steps, the cheapest action elsewhere; at the smallest
// budgets the cheapest everywhere.
class EvenSpender final : public Policy {
 public:
  std::string name() const override { return "even"; }
  const ActionSpace& space() const override { return space_; }
  std::unique_ptr<PolicyState> begin(const Budget& budget, int, const EpisodeId&) const override {
    auto state = std::make_unique<State>();
    state->spends = budget.kappa > 0.1f;
    return state;
  }
  void next(std::span<PolicyStep> steps) const override {
    for (PolicyStep& step : steps) {
      const bool dense = static_cast<const State*>(step.state)->spends &&
                         (step.observation->token % 2 == 0 || step.observation->step <= 2);
      step.action = dense ? space_.dense_index() : 0;
    }
  }

 private:
  struct State final : PolicyState {
    bool spends = true;
  };
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

// Spearman's by its definition: Pearson's of ranks, where equal values share the mean of theirs.
double spearman(const std::vector<double>& a, const std::vector<double>& b) {
  const auto rank = [](const std::vector<double>& values, double value) {
    double below = 0, equal = 0;
    for (const double other : values) {
      below += other < value;
      equal += other == value;
    }
    return below + (equal + 1) / 2;
  };
  double x = 0, y = 0, xy = 0, xx = 0, yy = 0;
  const auto n = static_cast<double>(a.size());
  for (size_t i = 0; i < a.size(); ++i) {
    const double p = rank(a, a[i]), q = rank(b, b[i]);
    x += p / n;
    y += q / n;
    xy += p * q / n;
    xx += p * p / n;
    yy += q * q / n;
  }
  return (xy - x * y) / std::sqrt((xx - x * x) * (yy - y * y));
}

TEST_F(BehaviourTest, SpendingIsCorrelatedWithSurprisalsByRank) {
  const auto dense = make_constant_policy(Action{});
  const std::vector<Arm> arms{{dense.get(), Budget{}, 0}};
  const auto results = evaluator.run(arms, true);
  std::vector<double> spent, target, spent_later, previous;
  for (size_t block = 0; block < results[0].size(); ++block)
    for (size_t t = 0; t < 8; ++t) {
      const auto ids = data.block(static_cast<int64_t>(block));
      const bool all = ids[static_cast<size_t>(options.context) + t] % 2 == 0 || t < 2;
      const auto& log_probs = results[0][block].log_probs;
      spent.push_back(all);
      target.push_back(-static_cast<double>(log_probs[t]));
      if (t == 0) continue;  // its token's surprisal is the prefix's
      spent_later.push_back(all);
      previous.push_back(-static_cast<double>(log_probs[t - 1]));
    }
  const double with_target = spearman(spent, target),
               with_previous = spearman(spent_later, previous);
  ASSERT_GT(std::abs(with_target), 0.01);
  ASSERT_GT(std::abs(with_previous), 0.01);
  const Behaviour behaviour = run();
  EXPECT_NEAR(behaviour.rank_correlation, with_target, 1e-9);
  EXPECT_NEAR(behaviour.rank_correlation_previous, with_previous, 1e-9);
  // At the smallest budget spending is the same everywhere: it counts as 0, apart from the other.
  const Behaviour two =
      run_behaviour(evaluator, data, policy, {Budget{}, {0.1f, 0.5f, 0.25f}}, kinds);
  EXPECT_NEAR(two.rank_correlation, with_target / 2, 1e-9);
}

TEST_F(BehaviourTest, RefusesWhatCannotBeRun) {
  EXPECT_THROW(run_behaviour(evaluator, data, policy, {}, kinds), Error);
  kinds.resize(10);
  EXPECT_THROW(run(), Error);
}

// Also where a word that is decoded alone has lost its space; ids may leave gaps.
TEST(TokenKinds, AreThoseInsideAText) {
  const auto sentencepiece = Tokenizer::load(test::test_data() / "tokenizers/sentencepiece_style");
  const std::vector<TokenKind> kinds = token_kinds(*sentencepiece);
  const int32_t the = sentencepiece->token_id("\xE2\x96\x81the");
  ASSERT_GE(the, 0);
  EXPECT_EQ(sentencepiece->decode(std::vector{the}), "the");
  EXPECT_EQ(kinds[static_cast<size_t>(the)], TokenKind::word_start);

  nlohmann::json gap = test::small_tokenizer();
  gap["added_tokens"][1]["id"] = 20;
  const std::vector<TokenKind> with_gap = token_kinds(*test::load_made(gap));
  ASSERT_EQ(with_gap.size(), 21u);
  EXPECT_EQ(with_gap[1], TokenKind::word_inside);
  EXPECT_EQ(with_gap[12], TokenKind::other);
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
