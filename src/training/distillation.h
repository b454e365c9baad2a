// Distilling the best of an input's sampled schedules into the policy, which is not in the paper: a
// self-imitation term beside the clipped loss (in the manner of Oh et al., "Self-Imitation
// Learning", ICML 2018, with the best of a group in place of returns above a value).
#pragma once

#include <cstdint>
#include <span>

#include "training/schedule.h"

namespace sol {

// Finds the best schedule of each group of `group_size` neighbours that share an input: the highest
// sum of rewards over effective steps minus penalty, ties to the first, among those whose realised
// averages are within `tolerance` of the request on every axis. It counts only if it beats its
// group's mean by more than rounding errors, 0.001 nats: where all schedules do equally well there
// is nothing to imitate. Sets its `imitation` to the group's size, so that a mean over all
// schedules' steps is a mean over groups, and the others' to 0. Returns how many groups have one.
// After assign_advantages, whose penalties it reads; throws Error when the number of schedules is
// not a multiple of the group.
int64_t mark_best_schedules(std::span<Schedule> schedules, int group_size, double tolerance);

}  // namespace sol
