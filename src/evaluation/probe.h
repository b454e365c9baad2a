// Headroom before training: how much each axis hurts, and what choosing schedules could win.
#pragma once

#include <cstdint>
#include <vector>

#include "evaluation/perplexity.h"
#include "evaluation/sweep.h"

namespace sol {

// Levels to try on each axis, one axis at a time.
struct ProbeLevels {
  std::vector<float> kappa{0.8f, 0.6f, 0.4f, 0.2f, 0.1f, 0.05f, 0.02f};
  std::vector<float> rho{0.9f, 0.8f, 0.7f, 0.6f, 0.5f, 0.4f, 0.3f, 0.2f};
  std::vector<int> bits{12, 10, 8, 7, 6, 5, 4, 3, 2};
};

struct LevelCost {
  Axis axis = Axis::kappa;
  Action action;
  double perplexity = 0;
  double increase = 0;        // over dense, nats per token
  double standard_error = 0;  // of the increase, over blocks; 0 for one block
  double attended = 0;

  double relative() const;  // of the perplexity over dense: exp(increase) - 1
};

struct AxisProbe {
  Outcome dense;
  std::vector<LevelCost> levels;
};

// The rest of the model dense, one axis at each of its levels.
AxisProbe probe_axes(BlockEvaluator& evaluator, const ProbeLevels& levels,
                     const SweepProgress& progress = {}, std::stop_token stop = {});

// What one budget offers to a chooser of schedules.
struct OracleResult {
  Budget budget;
  Outcome fixed;
  double random_mean = 0;    // mean perplexity of the K random-matched schedules
  double best_schedule = 0;  // of the one that is best over all blocks
  double oracle = 0;         // perplexity when each block has its best of the K

  // Relative gain over fixed, positive when better.
  double oracle_gain() const;
  double best_schedule_gain() const;
};

// K random-matched schedules of `space` at every budget, and fixed at their averages. The oracle
// sees the text it is judged on, so part of its gain is luck that no policy can have.
std::vector<OracleResult> probe_oracle(BlockEvaluator& evaluator, const ActionSpace& space,
                                       std::span<const Budget> budgets, int schedules,
                                       uint64_t seed, const SweepProgress& progress = {},
                                       std::stop_token stop = {});

// A quarter, a half and three quarters of the way up every axis' range.
std::vector<Budget> oracle_budgets(const ActionSpace& space);

}  // namespace sol
