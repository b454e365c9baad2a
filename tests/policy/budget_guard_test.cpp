#include "policy/budget_guard.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "policy/axis.h"
#include "support_policy.h"

namespace sol {
namespace {

// Plays an episode of random actions among the open ones.
Budget play(const ActionSpace& space, const Budget& budget, int horizon, std::mt19937& random,
            int first_keys = 100) {
  const BudgetGuard guard(space);
  Episode episode(space, budget, {.horizon = horizon});
  std::vector<float> bias(static_cast<size_t>(space.size()));
  for (int t = 1; t <= horizon; ++t) {
    const int keys = first_keys + t;
    int action = space.dense_index();
    if (episode.effective(keys)) {
      guard.biases(episode.features(keys), episode.effective_steps(), horizon - t + 1, bias);
      std::vector<int> choice;
      for (int a = 0; a < space.size(); ++a)
        if (bias[static_cast<size_t>(a)] == 0) choice.push_back(a);
      EXPECT_FALSE(choice.empty());
      action = choice[random() % choice.size()];
    }
    episode.record(action, keys);
  }
  return episode.realised();
}

Budget random_budget(const ActionSpace& space, std::mt19937& random) {
  Budget budget;
  for (const Axis axis : all_axes) {
    const auto levels = space.levels(axis);
    value(budget, axis) =
        std::uniform_real_distribution<float>(levels.front(), levels.back())(random);
  }
  return budget;
}

TEST(BudgetGuard, TwoLevelsMeetTheNearestAverageThatThereIs) {
  const ActionSpace space = test::two_levels();
  std::mt19937 random(1);
  for (int i = 0; i < 300; ++i) {
    const Budget budget = random_budget(space, random);
    const Budget realised = play(space, budget, 16, random);
    for (const Axis axis : all_axes) {
      const auto levels = space.levels(axis);
      const double gap = static_cast<double>(levels[1]) - levels[0];
      EXPECT_LE(std::abs(static_cast<double>(value(realised, axis)) - value(budget, axis)),
                gap / 32 + 1e-5);
    }
  }
}

TEST(BudgetGuard, SomeActionIsAlwaysOpenAndAveragesAreMet) {
  const ActionSpace space = ActionSpace::from_notation(
      {0.02, 0.1, 0.4, 1.0}, {"s30", "s45", "s100"}, {"q3", "q4", "q8", "q16"});
  std::mt19937 random(2);
  for (const int horizon : {1, 2, 3, 4, 16, 64})
    for (int i = 0; i < 100; ++i) {
      const Budget budget = random_budget(space, random);
      const Budget realised = play(space, budget, horizon, random);
      for (const Axis axis : all_axes)
        EXPECT_LE(std::abs(static_cast<double>(value(realised, axis)) - value(budget, axis)),
                  0.6 / 2 / horizon + 1e-4);  // no two levels are farther apart
    }
}

TEST(BudgetGuard, StepsThatDoNotCountAreNotPaidFor) {
  const ActionSpace space = test::two_levels();
  std::mt19937 random(3);
  // Keys 1..16: the steps up to 7 of them do not count, which leaves nine.
  const Budget realised = play(space, {0.55f, 0.8f, 0.65625f}, 16, random, 0);
  EXPECT_LE(std::abs(realised.kappa - 0.55f), 0.9f / 18 + 1e-4f);
  EXPECT_LE(std::abs(realised.rho - 0.8f), 0.4f / 18 + 1e-4f);
}

TEST(BudgetGuard, ATargetOutOfReachLeavesTheNearestLevel) {
  const ActionSpace space = test::two_levels();
  const BudgetGuard guard(space);
  std::vector<float> bias(8);
  // κ below its levels by more than half a step of the sum can make up for, ρ above.
  guard.biases({0.5f, 1, 0.01f, 1.0f, 1.0f, 0, 0, 0}, 8, 8, bias);
  for (int a = 0; a < 8; ++a) {
    const Action action = space.action(a);
    EXPECT_EQ(std::isfinite(bias[static_cast<size_t>(a)]),
              action.kappa < 0.5f && action.rho == 1.0f && action.bits == 16)
        << a;
  }
}

// An episode that takes the likeliest action of a network without an opinion.
TEST(BudgetGuard, APriorAloneMixesTheNeighbouringLevels) {
  const ActionSpace space = ActionSpace::from_notation({0.1, 0.2, 0.4, 1.0}, {"s100"}, {"q16"});
  const BudgetGuard guard(space, 3.0);
  Episode episode(space, {0.25f, 1.0f, 1.0f}, {.horizon = 16});
  std::vector<int> taken(4);
  for (int t = 1; t <= 16; ++t) {
    std::vector<float> bias(4);
    guard.biases(episode.features(100 + t), episode.effective_steps(), 17 - t, bias);
    const auto action = std::max_element(bias.begin(), bias.end()) - bias.begin();
    ++taken[static_cast<size_t>(action)];
    episode.record(static_cast<int>(action), 100 + t);
  }
  EXPECT_EQ(taken, (std::vector<int>{0, 12, 4, 0}));  // 12 · 0.2 + 4 · 0.4 = 16 · 0.25
}

TEST(BudgetGuard, APriorIsTheDistanceInLevelsOverTheAxes) {
  const ActionSpace space = ActionSpace::from_notation({0.2, 0.4, 1.0}, {"s50", "s100"}, {"q16"});
  const BudgetGuard guard(space, 2.0);
  std::vector<float> bias(6);
  // As much spent as was asked for in half of the 16 steps: averages of 0.3 and 0.9 are left.
  guard.biases({0.5f, 1, 0.3f, 0.9f, 1.0f, 0, 0, 0}, 8, 8, bias);
  const float kappa[] = {-1.0f, -1.0f, -3.0f}, rho[] = {-1.6f, -0.4f};
  for (size_t a = 0; a < 6; ++a) EXPECT_NEAR(bias[a], kappa[a / 2] + rho[a % 2], 1e-4f) << a;
  for (const double bad : {-1.0, 1001.0, 1e300, std::nan("")})
    EXPECT_THROW(BudgetGuard(space, bad), Error) << bad;
}

}  // namespace
}  // namespace sol
