#include "evaluation/probe.h"

#include <algorithm>
#include <cmath>
#include <memory>

#include "base/fail.h"
#include "evaluation/budget_grid.h"
#include "policy/policies.h"

namespace sol {

double LevelCost::relative() const {
  return std::expm1(increase);
}

double OracleResult::oracle_gain() const {
  return 1 - oracle / fixed.perplexity;
}
double OracleResult::best_schedule_gain() const {
  return 1 - best_schedule / fixed.perplexity;
}

namespace {

// Of a run of `arms`, behind one of `before` and before one of `after` of them.
BlockProgress scaled(const SweepProgress& progress, size_t arms, size_t before = 0,
                     size_t after = 0) {
  if (!progress) return {};
  const auto n = static_cast<int64_t>(arms), b = static_cast<int64_t>(before);
  const int64_t all = b + n + static_cast<int64_t>(after);
  return [&progress, n, b, all](int64_t done, int64_t total) {
    progress(b * total + n * done, all * total);
  };
}

}  // namespace

AxisProbe probe_axes(BlockEvaluator& evaluator, const ProbeLevels& levels,
                     const SweepProgress& progress, std::stop_token stop) {
  AxisProbe probe;
  const auto add = [&](Axis axis, const Action& action) {
    LevelCost cost;
    cost.axis = axis;
    cost.action = action;
    probe.levels.push_back(cost);
  };
  for (const float level : levels.kappa) add(Axis::kappa, Action{level, 1.0f, 16});
  for (const float level : levels.rho) add(Axis::rho, Action{1.0f, level, 16});
  for (const int level : levels.bits) add(Axis::eta, Action{1.0f, 1.0f, level});

  std::vector<std::unique_ptr<Policy>> policies;
  policies.push_back(make_constant_policy(Action{}));
  for (const LevelCost& cost : probe.levels) policies.push_back(make_constant_policy(cost.action));
  std::vector<Arm> arms;
  for (const auto& policy : policies) arms.push_back({policy.get(), Budget{}, 0});
  const auto results = evaluator.run(arms, false, scaled(progress, arms.size()), stop);

  probe.dense = make_outcome(Budget{}, results[0], policies[0]->space());
  const double blocks = static_cast<double>(probe.dense.nll.size());
  for (size_t i = 0; i < probe.levels.size(); ++i) {
    LevelCost& cost = probe.levels[i];
    const auto& blocks_of = results[i + 1];
    std::vector<double> increases;
    for (size_t b = 0; b < blocks_of.size(); ++b)
      increases.push_back((blocks_of[b].nll - probe.dense.nll[b]) / blocks_of[b].steps);
    const MeanDeviation increase = mean_deviation(increases);
    cost.perplexity = perplexity(blocks_of);
    cost.increase = increase.mean;
    cost.standard_error = increase.deviation / std::sqrt(blocks);
    cost.attended = mean_attended(blocks_of);
  }
  return probe;
}

std::vector<OracleResult> probe_oracle(BlockEvaluator& evaluator, const ActionSpace& space,
                                       std::span<const Budget> budgets, int schedules,
                                       uint64_t seed, const SweepProgress& progress,
                                       std::stop_token stop) {
  if (schedules < 1) fail("an oracle needs at least one schedule, not {}", schedules);
  const auto fixed = make_fixed_policy(space);
  const auto random = make_random_matched_policy(space, seed);
  const auto count = static_cast<size_t>(schedules);
  std::vector<Arm> arms, fixed_arms;
  for (const Budget& budget : budgets)
    for (size_t k = 0; k < count; ++k)
      arms.push_back({random.get(), budget, static_cast<uint32_t>(k)});
  const auto results =
      evaluator.run(arms, false, scaled(progress, arms.size(), 0, budgets.size()), stop);
  // Whole steps decide what the schedules average to, all of one budget alike: fixed has the same.
  for (size_t i = 0; i < budgets.size(); ++i)
    fixed_arms.push_back(
        {fixed.get(), make_outcome(budgets[i], results[i * count], space).realised, 0});
  const auto fixed_results =
      evaluator.run(fixed_arms, false, scaled(progress, budgets.size(), arms.size()), stop);

  std::vector<OracleResult> found;
  for (size_t i = 0; i < budgets.size(); ++i) {
    const size_t first = i * count;
    OracleResult result;
    result.budget = space.clamp_off_axes(budgets[i]);
    result.fixed = make_outcome(fixed_arms[i].budget, fixed_results[i], space);
    std::vector<BlockResult> best = results[first];
    result.best_schedule = perplexity(best);
    for (size_t k = 0; k < count; ++k) {
      const auto& blocks = results[first + k];
      const double value = perplexity(blocks);
      result.random_mean += value / static_cast<double>(count);
      result.best_schedule = std::min(result.best_schedule, value);
      for (size_t b = 0; b < blocks.size(); ++b)
        if (blocks[b].nll < best[b].nll) best[b] = blocks[b];
    }
    result.oracle = perplexity(best);
    found.push_back(std::move(result));
  }
  return found;
}

std::vector<Budget> oracle_budgets(const ActionSpace& space) {
  const BudgetRanges ranges = level_ranges(space);
  std::vector<Budget> budgets;
  for (const double share : {0.25, 0.5, 0.75}) {
    const auto at = [&](const BudgetRange& range) {
      return static_cast<float>(range.low + share * (range.high - range.low));
    };
    budgets.push_back({at(ranges.kappa), at(ranges.rho), at(ranges.eta)});
  }
  return budgets;
}

}  // namespace sol
