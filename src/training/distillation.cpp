#include "training/distillation.h"

#include <algorithm>
#include <cmath>

#include "base/fail.h"
#include "policy/axis.h"

namespace sol {
namespace {

constexpr double least_advantage = 1e-3;  // nats over a whole schedule

double score(const Schedule& schedule) {
  double sum = -schedule.penalty;
  for (size_t t = 0; t < schedule.rewards.size(); ++t)
    if (schedule.effective[t]) sum += schedule.rewards[t];
  return sum;
}

bool meets_budget(const Schedule& schedule, double tolerance) {
  if (schedule.realised_time)
    return std::abs(static_cast<double>(*schedule.realised_time) - schedule.budget.kappa) <=
           tolerance;
  for (const Axis axis : all_axes) {
    const double gap = std::abs(static_cast<double>(value(schedule.realised, axis)) -
                                value(schedule.budget, axis));
    if (!(gap <= tolerance)) return false;
  }
  return true;
}

}  // namespace

int64_t mark_best_schedules(std::span<Schedule> schedules, int group_size, double tolerance) {
  const size_t size = static_cast<size_t>(std::max(group_size, 1));
  if (group_size < 1 || schedules.size() % size != 0)
    fail("distillation: {} schedules cannot be cut into groups of {}", schedules.size(),
         group_size);
  int64_t marked = 0;
  for (size_t first = 0; first < schedules.size(); first += size) {
    Schedule* best = nullptr;
    double highest = 0, mean = 0;
    for (Schedule& schedule : schedules.subspan(first, size)) {
      schedule.imitation = 0;
      const double own = score(schedule);
      mean += own / static_cast<double>(size);
      if (!meets_budget(schedule, tolerance) || (best && own <= highest)) continue;
      best = &schedule;
      highest = own;
    }
    if (!best || highest - mean <= least_advantage) continue;
    best->imitation = static_cast<float>(size);
    ++marked;
  }
  return marked;
}

}  // namespace sol
