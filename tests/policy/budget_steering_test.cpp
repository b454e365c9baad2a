#include "policy/budget_steering.h"

#include "heuristics_golden.h"

namespace sol {
namespace {

using test::heuristics;

TEST(BudgetSteering, AgreesWithTheReference) {
  int compared = 0;
  for (const Json& group : heuristics()["pure_select"]) {
    const auto levels = group["levels"].get<std::vector<float>>();
    const auto target = group["target"].get<float>();
    const auto gamma = group["gamma"].get<float>();
    for (const Json& row : group["rows"]) {
      const float signal = row[1].get<float>();
      const SteeringState state{row[2].get<float>(), row[3].get<float>()};
      const float left = row[4].get<float>();
      EXPECT_EQ(steer(levels, row[0].get<float>(), target, state, left, gamma * (signal - 0.5f)),
                row[5].get<int>())
          << group["name"] << " " << row.dump() << " target " << target << " gamma " << gamma;
      ++compared;
    }
  }
  EXPECT_GE(compared, 500);
}

TEST(BudgetSteering, RequiredAverageAgreesWithTheReference) {
  for (const char* kind : {"emc", "dac"})
    for (const Json& json : heuristics()["stub"][kind]) {
      const test::HeuristicRun run(json);
      const std::vector<float> levels = run.space.levels(Axis::kappa);
      for (size_t sequence = 0; sequence < json["ik"][0][0].size(); ++sequence) {
        SteeringState state;
        for (int t = 0; t < run.horizon; ++t) {
          const auto at = static_cast<size_t>(t);
          const float left = static_cast<float>(run.horizon - t);
          EXPECT_FLOAT_EQ(required_average(levels, run.target.kappa, state, left),
                          json["creq_k"][0][at][sequence].get<float>())
              << run.name() << " step " << t + 1;
          state.sum += levels[json["ik"][0][at][sequence].get<size_t>()];
          state.count += 1;
        }
      }
    }
}

// Whatever the signal says: between levels that are one step apart the sum over the episode is met
// within a step.
RC_GTEST_PROP(BudgetSteeringProperty, MeetsTheBudget, ()) {
  const auto count = *rc::gen::inRange<size_t>(1, 8);
  std::vector<float> levels;
  for (size_t i = 0; i < count; ++i)
    levels.push_back((static_cast<float>(i) + 1.0f) / static_cast<float>(count));
  const float span = levels.back() - levels.front();
  const float target =
      levels.front() + span * static_cast<float>(*rc::gen::inRange(0, 1001)) / 1000.0f;
  const int horizon = *rc::gen::inRange(1, 65);
  SteeringState state;
  for (int t = 0; t < horizon; ++t) {
    const float signal = static_cast<float>(*rc::gen::inRange(0, 1001)) / 1000.0f;
    const auto left = static_cast<float>(horizon - t);
    const int level = steer(levels, required_average(levels, target, state, left), target, state,
                            left, 0.35f * (signal - 0.5f));
    RC_ASSERT(level >= 0 && level < static_cast<int>(count));
    state.sum += levels[static_cast<size_t>(level)];
    state.count += 1;
  }
  const float step = count > 1 ? levels[1] - levels[0] : 0.0f;
  RC_ASSERT(std::abs(state.sum - target * static_cast<float>(horizon)) <= step + 1e-4f);
}

}  // namespace
}  // namespace sol
