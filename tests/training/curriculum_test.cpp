#include "training/curriculum.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "training/config.h"
#include "training/rollout.h"

namespace sol::test {
namespace {

TrainingConfig harsh() {
  TrainingConfig config;
  config.space = ActionSpace({0.1f, 1.0f}, {0.5f, 1.0f}, {16});
  config.kappa.range = {0.1, 1.0};
  config.rho.range = {0.5, 0.9};
  config.eta.range = {1.0, 1.0};
  config.updates = 100;
  config.curriculum = {.share = 0.5, .width = 0.2};
  return config;
}

TEST(Curriculum, InputsPerUpdate) {
  // The paper's: 8 inputs of 16 schedules of 16 steps are the 2048 steps of a collection; 4
  // minibatches of 32 schedules, of which an update takes 8.
  EXPECT_DOUBLE_EQ(inputs_per_update({}), 16.0);
  TrainingConfig config;
  config.schedules = 5;
  config.batch = 3;           // 240 steps a batch: 9 batches, 135 schedules
  config.minibatch = 16 * 4;  // 34 minibatches, the last of 3
  config.grad_accum = 2;
  EXPECT_DOUBLE_EQ(inputs_per_update(config), 27.0 / 34 * 2);
}

TEST(Curriculum, TheRangeWidensFromItsHighEnd) {
  TrainingConfig config = harsh();  // 0.5 * 100 updates of 16 inputs
  EXPECT_DOUBLE_EQ(budget_range_share(config, 0), 0.2);
  EXPECT_DOUBLE_EQ(budget_range_share(config, 400), 0.6);
  EXPECT_DOUBLE_EQ(budget_range_share(config, 800), 1.0);
  EXPECT_DOUBLE_EQ(budget_range_share(config, 1 << 30), 1.0);
  for (const auto& [position, share] : {std::pair{0u, 0.2}, {400u, 0.6}, {1200u, 1.0}}) {
    // Many draws at one place of the curriculum, by the seed.
    float least_kappa = 1, most_kappa = 0, least_rho = 1, most_rho = 0;
    for (config.seed = 0; config.seed < 2000; ++config.seed) {
      const Budget budget = draw_budget(config, position);
      least_kappa = std::min(least_kappa, budget.kappa);
      most_kappa = std::max(most_kappa, budget.kappa);
      least_rho = std::min(least_rho, budget.rho);
      most_rho = std::max(most_rho, budget.rho);
      EXPECT_EQ(budget.eta, 1.0f);
    }
    EXPECT_GE(least_kappa, 1.0 - 0.9 * share - 1e-6);
    EXPECT_NEAR(least_kappa, 1.0 - 0.9 * share, 0.01);
    EXPECT_NEAR(most_kappa, 1.0, 0.01);
    EXPECT_GE(least_rho, 0.9 - 0.4 * share - 1e-6);
    EXPECT_NEAR(least_rho, 0.9 - 0.4 * share, 0.01);
    EXPECT_NEAR(most_rho, 0.9, 0.01);
  }
}

TEST(Curriculum, OffOrOverTheDrawsAreThoseWithout) {
  TrainingConfig with = harsh(), without = harsh();
  without.curriculum = {};
  int different = 0;
  for (uint64_t position = 0; position < 1600; ++position) {
    const bool same = draw_budget(with, position) == draw_budget(without, position);
    if (position >= 800)
      EXPECT_TRUE(same) << position;
    else
      different += same ? 0 : 1;
  }
  EXPECT_EQ(different, 800);
  with.curriculum.width = 1;
  EXPECT_EQ(draw_budget(with, 3), draw_budget(without, 3));
}

}  // namespace
}  // namespace sol::test
