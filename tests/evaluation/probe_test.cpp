#include "evaluation/probe.h"

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

struct ProbeTest : testing::Test {
  FakeModel model;
  ProtocolOptions options = small_protocol();
  BlockDataset data = fake_blocks(6, options);
  BlockEvaluator evaluator{model, data, first_blocks(6), options};
};

TEST_F(ProbeTest, TriesOneAxisAtATime) {
  ProbeLevels levels;
  levels.kappa = {0.5f, 0.1f};
  levels.rho = {0.3f};
  levels.bits = {4};
  const AxisProbe probe = probe_axes(evaluator, levels);
  ASSERT_EQ(probe.levels.size(), 4u);
  EXPECT_EQ(probe.levels[0].action, (Action{0.5f, 1.0f, 16}));
  EXPECT_EQ(probe.levels[2].action, (Action{1.0f, 0.3f, 16}));
  EXPECT_EQ(probe.levels[3].action, (Action{1.0f, 1.0f, 4}));
  for (const LevelCost& cost : probe.levels) {
    EXPECT_NEAR(cost.perplexity, probe.dense.perplexity * (1 + cost.relative()), 1e-9);
    EXPECT_GT(cost.increase, 0);  // what is kept is what counts in the fake model
    EXPECT_GT(cost.standard_error, 0);
  }
  EXPECT_GT(probe.levels[1].increase, probe.levels[0].increase);
  // 1.5 nats times the share that is dropped, give or take the model's noise of 0.1.
  EXPECT_NEAR(probe.levels[0].increase, 1.5 * 0.5 / 3, 0.1);
  EXPECT_DOUBLE_EQ(probe.levels[0].attended, 0.75);
}

TEST_F(ProbeTest, TheOracleIsTheBestOfItsSchedulesPerBlock) {
  const ActionSpace space({0.02f, 1.0f}, {0.3f, 1.0f}, {3, 16});
  const auto budgets = oracle_budgets(space);
  ASSERT_EQ(budgets.size(), 3u);
  EXPECT_FLOAT_EQ(budgets[1].kappa, 0.51f);
  EXPECT_FLOAT_EQ(budgets[1].rho, 0.65f);
  const auto results = probe_oracle(evaluator, space, budgets, 5, 9);
  ASSERT_EQ(results.size(), 3u);

  const auto random = make_random_matched_policy(space, 9);
  std::vector<Arm> arms;
  for (uint32_t k = 0; k < 5; ++k) arms.push_back({random.get(), budgets[1], k});
  const auto rollouts = evaluator.run(arms);
  double mean = 0, best = 1e9, oracle = 0;
  for (const auto& blocks : rollouts) {
    mean += perplexity(blocks) / 5;
    best = std::min(best, perplexity(blocks));
  }
  for (size_t b = 0; b < 6; ++b) {
    double least = 1e9;
    for (const auto& blocks : rollouts) least = std::min(least, blocks[b].nll);
    oracle += least;
  }
  EXPECT_NEAR(results[1].random_mean, mean, 1e-9);
  EXPECT_NEAR(results[1].best_schedule, best, 1e-9);
  EXPECT_NEAR(results[1].oracle, std::exp(oracle / (6 * options.horizon)), 1e-9);
  EXPECT_LE(results[1].oracle, results[1].best_schedule);
  EXPECT_NEAR(results[1].oracle_gain(), 1 - results[1].oracle / results[1].fixed.perplexity, 1e-12);
  // A quarter of 15 steps is no whole number of them: fixed has the schedules' averages all the
  // same.
  for (const OracleResult& result : results) {
    const Arm arm{random.get(), result.budget, 0};
    const Outcome schedule =
        make_outcome(result.budget, evaluator.run(std::span(&arm, 1))[0], space);
    EXPECT_EQ(result.fixed.asked, schedule.realised);
    EXPECT_NEAR(result.fixed.net_keep, schedule.net_keep, 0.05);
  }
  EXPECT_THROW(probe_oracle(evaluator, space, budgets, 0, 9), Error);
}

}  // namespace
}  // namespace sol
