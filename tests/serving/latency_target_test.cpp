#include "serving/latency_target.h"

#include <gtest/gtest.h>

#include "served.h"
#include "sol/episode.h"

namespace sol {
namespace {

const Budget lowest{0.1f, 0.1f, 1.0f};

TEST(LatencyTarget, AimsByTheTable) {
  const CostTable costs = test::made_costs();
  EXPECT_EQ(LatencyTarget(costs, 10.0, lowest).next(100, 0, 0), Budget{});
  const Budget budget = LatencyTarget(costs, 8.0, lowest).next(100, 0, 0);
  EXPECT_NEAR(costs.token_ms(budget.kappa, budget.rho, 100), 8.0, 0.01);
  EXPECT_EQ(budget.kappa, 1.0f);  // a shorter context saves nothing here
  EXPECT_LT(budget.rho, 0.7f);
  EXPECT_EQ(LatencyTarget(costs, 1.0, lowest).next(100, 0, 0).rho, lowest.rho);
}

// A machine that is slower than the table says, and one that becomes so in the middle.
double mean_ms(double target_ms, double slower_at_first, double slower_later, int tokens) {
  const CostTable costs = test::made_costs();
  LatencyTarget target(costs, target_ms, lowest);
  double spent = 0;
  Budget budget;
  for (int token = 0; token < tokens; ++token) {
    if (token % costs.horizon() == 0) budget = target.next(100, token, spent);
    spent += costs.token_ms(budget.kappa, budget.rho, 100) *
             (token < tokens / 2 ? slower_at_first : slower_later);
  }
  return spent / tokens;
}

TEST(LatencyTarget, CorrectsWhatTheTableGetsWrong) {
  EXPECT_NEAR(mean_ms(8.0, 1.0, 1.0, 64), 8.0, 0.1);
  EXPECT_NEAR(mean_ms(8.0, 1.2, 1.2, 64), 8.0, 0.8);
  EXPECT_NEAR(mean_ms(8.0, 0.9, 0.9, 64), 8.0, 0.8);
  EXPECT_NEAR(mean_ms(8.0, 1.0, 1.3, 128), 8.0, 0.8);
  EXPECT_NEAR(mean_ms(7.0, 1.3, 0.9, 128), 7.0, 0.7);
}

TEST(LatencyTarget, KnowsWhatThePresentLoadAllows) {
  const CostTable costs = test::made_costs();
  LatencyTarget target(costs, 8.0, lowest);
  EXPECT_DOUBLE_EQ(target.dense_ms(100), 10.0);
  EXPECT_NEAR(target.fastest_ms(100), 10.0 - 5.4 + 0.5, 1e-6);
  target.next(100, 0, 0);
  for (int episode = 1; episode < 12; ++episode)
    target.next(100, 16 * episode, 16.0 * episode * 20);
  EXPECT_GT(target.dense_ms(100), 25.0);  // 20 ms a token at the lowest shares
}

// Of many sequences together somebody keeps every channel: lowering ρ would cost and save nothing.
TEST(LatencyTarget, LowersNoChannelsForManySequences) {
  const CostTable costs = test::made_costs();
  LatencyTarget target(costs, 7.0, lowest);
  EXPECT_LT(target.next(100, 0, 0, 4).rho, 1.0f);
  EXPECT_EQ(target.next(100, 16, 16 * 12.0, 5), Budget{});
  EXPECT_DOUBLE_EQ(target.fastest_ms(100), target.dense_ms(100));
}

TEST(LatencyTarget, AsksAPolicyForTimesForShares) {
  const CostTable costs = test::made_costs();
  const BudgetRange shares{0.3, 1.0};
  EXPECT_EQ(LatencyTarget(costs, 10.0, lowest, shares).next(100, 0, 0), time_budget(1.0f));
  const Budget budget = LatencyTarget(costs, 8.0, lowest, shares).next(100, 0, 0);
  EXPECT_NEAR(costs.share_ms(static_cast<double>(budget.kappa), 100), 8.0, 1e-5);
  EXPECT_EQ(budget.rho, budget.kappa);
  EXPECT_EQ(LatencyTarget(costs, 0.1, lowest, BudgetRange{0.9, 1.0}).next(100, 0, 0),
            time_budget(0.9f));
  EXPECT_EQ(LatencyTarget(costs, 9.5, lowest, BudgetRange{0.3, 0.7}).next(100, 0, 0),
            time_budget(0.7f));
  // A machine that is a fifth slower is asked for less after an episode.
  LatencyTarget target(costs, 8.0, lowest, shares);
  const float first = target.next(100, 0, 0).kappa;
  const int tokens = costs.horizon();
  EXPECT_LT(target.next(100, tokens, 1.2 * 8.0 * tokens).kappa, first - 0.05f);
}

}  // namespace
}  // namespace sol
