// A policy against random schedules at given operating points (paper, appendix, "Random-search
// landscape at matched budgets" and "Policy vs. random search").
#pragma once

#include <span>
#include <string>
#include <vector>

#include "evaluation/perplexity.h"
#include "evaluation/sweep.h"

namespace sol {

// What is kept of a schedule that was played on every block.
struct ScheduleOutcome {
  double net_keep = 0;
  double perplexity = 0;
};

struct RandomSchedules {
  std::string policy;  // how they were drawn: "random-matched" or "random-uniform"
  std::vector<ScheduleOutcome> schedules;

  const ScheduleOutcome& best() const;  // the lowest perplexity; there must be one
  ScheduleOutcome mean() const;         // of both figures
};

// One budget: the policy, fixed and random schedules at the averages that the policy realised.
struct SearchPoint {
  Budget requested;
  Budget realised;  // by the policy
  ScheduleOutcome policy, fixed;
  std::vector<RandomSchedules> random;
};

struct SearchRequest {
  const Policy* policy = nullptr;
  const Policy* fixed = nullptr;
  std::vector<const Policy*> random;  // each plays `schedules` draws at every budget
  std::vector<Budget> budgets;
  int schedules = 30;
  uint32_t first_rollout = 0;  // of the first budget's first draw; others follow
};

// Random schedules of one budget share no draw with those of another. Errors as
// BlockEvaluator::run; also when the request names no policy, no budget or no schedule.
std::vector<SearchPoint> run_random_search(BlockEvaluator& evaluator, const SearchRequest& request,
                                           const SweepProgress& progress = {},
                                           std::stop_token stop = {});

// Schedules that are strictly better than `perplexity`, of the random ones of one kind.
int64_t better_than(const RandomSchedules& random, double perplexity);

}  // namespace sol
