#include "training/spending_price.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/random.h"
#include "policy/axis.h"
#include "policy/budget_guard.h"
#include "sol/error.h"
#include "support.h"
#include "training/advantage.h"

namespace sol::test {
namespace {

const ActionSpace space_of_two({0.2f, 1.0f}, {0.5f, 1.0f}, {16});

// One of T steps that all count, with actions by their index in the space: κ slowest.
Schedule schedule(std::vector<int> actions, std::vector<float> rewards, const Budget& budget) {
  Schedule s;
  s.effective.assign(actions.size(), 1);
  s.actions = std::move(actions);
  s.rewards = std::move(rewards);
  s.budget = budget;
  return s;
}

// Groups of four schedules with random actions whose steps are worth what they spend at `worth`,
// per axis and for the whole way between its levels, beside something of the token's own.
std::vector<Schedule> random_batch(const ActionSpace& space, int groups, size_t steps,
                                   const std::array<double, 3>& worth) {
  Random random({.seed = 3, .stream = RandomStream::test});
  std::vector<Schedule> out;
  for (int g = 0; g < groups; ++g) {
    std::vector<double> own(steps);
    for (double& x : own) x = -4 * random.uniform_double();
    for (int k = 0; k < 4; ++k) {
      std::vector<int> actions;
      std::vector<float> rewards;
      for (size_t t = 0; t < steps; ++t) {
        actions.push_back(static_cast<int>(random.below(static_cast<uint64_t>(space.size()))));
        const Action action = space.action(actions.back());
        const Budget spent{action.kappa, action.rho, action.eta()};
        double reward = own[t];
        for (const Axis axis : all_axes) {
          const auto levels = space.levels(axis);
          if (space.on(axis))
            reward += worth[static_cast<size_t>(axis)] *
                      static_cast<double>((value(spent, axis) - levels.front()) /
                                          (levels.back() - levels.front()));
        }
        rewards.push_back(static_cast<float>(reward));
      }
      out.push_back(schedule(std::move(actions), std::move(rewards), {0.6f, 0.75f, 1.0f}));
    }
  }
  return out;
}

TEST(SpendingPrices, StartAtWhatSpendingIsWorth) {
  auto batch = random_batch(space_of_two, 8, 6, {0.3, 0.7, 0.0});
  SpendingPrices prices(space_of_two, 0.05);
  EXPECT_FALSE(prices.table());
  prices.charge(batch, 4);
  ASSERT_TRUE(prices.table());
  for (size_t k = 0; k < price_places; ++k) {
    EXPECT_NEAR((*prices.table())[0][k], 0.3, 1e-4);
    EXPECT_NEAR((*prices.table())[1][k], 0.7, 1e-4);
    EXPECT_EQ((*prices.table())[2][k], 0.0);  // off
  }
  // At these prices no action is better than another.
  assign_advantages(batch, 4, {.gamma = 0, .whiten = false, .penalty = {.kappa = 0, .rho = 0}});
  for (const Schedule& s : batch)
    for (const float a : s.advantages) EXPECT_NEAR(a, 0.0f, 1e-4f);
}

TEST(SpendingPrices, WhatHurtsStartsAtZero) {
  auto batch = random_batch(space_of_two, 8, 6, {-0.3, 0.7, 0.0});
  SpendingPrices prices(space_of_two, 0.05);
  prices.charge(batch, 4);
  EXPECT_EQ((*prices.table())[0][3], 0.0);
  EXPECT_NEAR((*prices.table())[1][3], 0.7, 1e-4);
}

TEST(SpendingPrices, AreReadBetweenTheirPlacesByWhatIsLeftPerStep) {
  SpendingPrices prices(space_of_two, 0.05);
  PriceTable table{};
  for (size_t k = 0; k < price_places; ++k) table[0][k] = static_cast<double>(k * k);
  table[1].fill(2.0);
  prices.restore(table);
  // κ 0.6: half of the way between its levels. Dense, then lowest, then dense: 1/2 is left per
  // step, then (1.5 - 1) / 2, then (1.5 - 1) / 1; ρ dense throughout.
  std::vector<Schedule> one{schedule({3, 1, 3}, {0, 0, 0}, {0.6f, 1.0f, 1.0f})};
  prices.charge(one, 1);
  ASSERT_EQ(one[0].charges.size(), 3u);
  EXPECT_NEAR(one[0].charges[0], 25 + 2, 1e-4);
  EXPECT_NEAR(one[0].charges[1], 0 + 2, 1e-4);  // the lowest level costs nothing
  EXPECT_NEAR(one[0].charges[2], 25 + 2, 1e-4);
  // A quarter of the way, (0.4 - 0.2) / 0.8, is left per step at first, then, as the lowest level
  // has been chosen, a third: between the places 0.3 and 0.4.
  std::vector<Schedule> other{schedule({1, 3, 1, 3}, {0, 0, 0, 0}, {0.4f, 1.0f, 1.0f})};
  prices.charge(other, 1);
  EXPECT_NEAR(other[0].charges[1], (1.0 / 3 - 0.3) / 0.1 * (16 - 9) + 9 + 2, 1e-4);
}

TEST(SpendingPrices, StepsThatDoNotCountCostNothingAndSpendNothing) {
  SpendingPrices prices(space_of_two, 0.05);
  PriceTable table{};
  for (size_t k = 0; k < price_places; ++k) table[0][k] = static_cast<double>(k);
  prices.restore(table);
  // Of the two that count half of the way is left per step; the dense step before is not of them.
  std::vector<Schedule> one{schedule({3, 3, 0}, {0, 0, 0}, {0.6f, 0.5f, 1.0f})};
  one[0].effective[0] = 0;
  prices.charge(one, 1);
  EXPECT_EQ(one[0].charges[0], 0.0f);
  EXPECT_NEAR(one[0].charges[1], 5.0f, 1e-5f);
  EXPECT_EQ(one[0].charges[2], 0.0f);
}

// The guard's prior takes an action's distance to what is left per step off its logit, so that it
// tells how much that is.
TEST(SpendingPrices, WhatIsLeftIsAsTheGuardHasIt) {
  const Budget budget{0.55f, 0.8f, 1.0f};
  const BudgetGuard guard(space_of_two, 1.0);
  SpendingPrices prices(space_of_two, 0.05);
  PriceTable table{};
  for (size_t k = 0; k < price_places; ++k) table[0][k] = static_cast<double>(k) / 10;
  prices.restore(table);
  const std::vector<int> actions{3, 0, 3, 2, 3, 0};
  std::vector<Schedule> one{schedule(actions, std::vector<float>(6), budget)};
  prices.charge(one, 1);
  Episode episode(space_of_two, budget, {.horizon = 6});
  for (int t = 0; t < 6; ++t) {
    std::vector<float> bias(4);
    const Features features = episode.features(100 + t);
    guard.biases(features, t, 6 - t, bias);
    // Of two actions that differ in κ alone: -left and -(1 - left), unless one is closed.
    if (std::isfinite(bias[0]) && std::isfinite(bias[2]) && actions[static_cast<size_t>(t)] >= 2) {
      const float left = (bias[2] - bias[0] + 1) / 2;
      EXPECT_NEAR(one[0].charges[static_cast<size_t>(t)], left, 1e-5f) << t;
    }
    episode.record(actions[static_cast<size_t>(t)], 100 + t);
  }
}

TEST(SpendingPrices, RiseWhereTooMuchIsSpentAndFallWhereTooLittle) {
  PriceTable table{};
  table[0].fill(1.0);
  const auto after = [&](int action, float kappa, size_t steps) {
    SpendingPrices prices(space_of_two, 0.5);
    prices.restore(table);
    // Two schedules whose rewards deviate by 2 from their mean.
    std::vector<Schedule> group;
    for (const float reward : {-2.0f, 2.0f})
      group.push_back(schedule(std::vector<int>(steps, action), std::vector<float>(steps, reward),
                               {kappa, 0.5f, 1.0f}));
    prices.adjust(group, 2);
    return (*prices.table())[0];
  };
  // All dense where half of the way is left: two visits at 0.5, the last step is not one.
  const auto risen = after(2, 0.6f, 2);
  EXPECT_NEAR(risen[5], 1 + 0.5 * 2 * (2 * 0.5) / (2 + 20), 1e-6);
  EXPECT_EQ(risen[2], 1.0);
  const auto fallen = after(0, 0.6f, 2);
  EXPECT_NEAR(fallen[5], 1 - 0.5 * 2 * (2 * 0.5) / (2 + 20), 1e-6);
  EXPECT_EQ(after(2, 0.6f, 1), table[0]);  // a last step alone
  EXPECT_EQ(after(2, 1.0f, 9), table[0]);  // what was left
  table[0].fill(0.01);
  EXPECT_EQ(after(0, 0.6f, 2)[5], 0.0);  // nothing is paid for spending
}

TEST(SpendingPrices, SchedulesThatDoNotFitAreErrors) {
  EXPECT_THROW(SpendingPrices(space_of_two, 0.0), Error);
  EXPECT_THROW(SpendingPrices(space_of_two, NAN), Error);
  SpendingPrices prices(space_of_two, 0.05);
  auto batch = random_batch(space_of_two, 2, 3, {});
  EXPECT_THROW(prices.adjust(batch, 4), Error);  // nothing charged yet
  EXPECT_THROW(prices.charge(batch, 3), Error);
  PriceTable table{};
  table[1][2] = INFINITY;
  EXPECT_THROW(prices.restore(table), Error);
  batch[1].actions.pop_back();
  EXPECT_THROW(prices.charge(batch, 4), Error);
}

}  // namespace
}  // namespace sol::test
