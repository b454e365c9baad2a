#include "evaluation/random_search.h"

#include <algorithm>

#include "base/fail.h"

namespace sol {
namespace {

ScheduleOutcome summarised(std::span<const BlockResult> blocks, const ActionSpace& space) {
  return {space.net_keep_rate(mean_realised(blocks)), perplexity(blocks)};
}

}  // namespace

const ScheduleOutcome& RandomSchedules::best() const {
  return *std::ranges::min_element(schedules, {}, &ScheduleOutcome::perplexity);
}

ScheduleOutcome RandomSchedules::mean() const {
  ScheduleOutcome mean;
  const auto n = static_cast<double>(schedules.size());
  for (const ScheduleOutcome& schedule : schedules) {
    mean.net_keep += schedule.net_keep / n;
    mean.perplexity += schedule.perplexity / n;
  }
  return mean;
}

std::vector<SearchPoint> run_random_search(BlockEvaluator& evaluator, const SearchRequest& request,
                                           const SweepProgress& progress, std::stop_token stop) {
  if (!request.policy || !request.fixed) fail("a random search needs a policy and the fixed one");
  if (request.budgets.empty()) fail("a random search needs at least one budget");
  if (request.schedules < 1) fail("a random search of {} schedules", request.schedules);

  const ActionSpace& space = request.policy->space();
  const auto blocks = static_cast<int64_t>(evaluator.indices().size());
  const auto points = static_cast<int64_t>(request.budgets.size());
  const int64_t total =
      blocks * points *
      (2 + static_cast<int64_t>(request.random.size()) * int64_t{request.schedules});
  int64_t before = 0;
  const auto run = [&](const std::vector<Arm>& arms) {
    const auto count = static_cast<int64_t>(arms.size());
    auto results = evaluator.run(
        arms, false,
        [&](int64_t done, int64_t) {
          if (progress) progress(before + done * count, total);
        },
        stop);
    before += blocks * count;
    return results;
  };

  std::vector<Arm> first;
  for (const Budget& budget : request.budgets) first.push_back({request.policy, budget, 0});
  const auto played = run(first);

  std::vector<SearchPoint> found;
  for (size_t i = 0; i < request.budgets.size(); ++i) {
    SearchPoint point;
    point.requested = request.budgets[i];
    point.realised = mean_realised(played[i]);
    point.policy = summarised(played[i], space);

    std::vector<Arm> arms{{request.fixed, point.realised, 0}};
    for (const Policy* random : request.random)
      for (int k = 0; k < request.schedules; ++k)
        arms.push_back({random, point.realised,
                        request.first_rollout +
                            static_cast<uint32_t>(i) * static_cast<uint32_t>(request.schedules) +
                            static_cast<uint32_t>(k)});
    const auto results = run(arms);
    point.fixed = summarised(results[0], space);
    size_t next = 1;
    for (const Policy* random : request.random) {
      RandomSchedules schedules{random->name(), {}};
      for (int k = 0; k < request.schedules; ++k)
        schedules.schedules.push_back(summarised(results[next++], space));
      point.random.push_back(std::move(schedules));
    }
    found.push_back(std::move(point));
  }
  return found;
}

int64_t better_than(const RandomSchedules& random, double perplexity) {
  return std::ranges::count_if(random.schedules, [&](const ScheduleOutcome& schedule) {
    return schedule.perplexity < perplexity;
  });
}

}  // namespace sol
