// Sampled schedules of a batch of inputs on the frozen model (paper, "GRPO with per-sequence budget
// sampling"): a dense prefix per input, shared by its K schedules; T teacher-forced steps of all of
// them together.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <stop_token>
#include <vector>

#include "sol/frozen_model.h"
#include "sol/policy.h"
#include "training/config.h"
#include "training/schedule.h"

namespace sol {

// One input: context + T + 1 ids. The first `context` are the prefix; step t = 1..T feeds
// ids[context + t - 1] and is scored against ids[context + t].
struct RolloutInput {
  std::span<const int32_t> ids;
  uint64_t position = 0;  // in the training data; with the seed it keys every draw of this input
  Budget budget;
};

struct RolloutTimes {
  double prefill = 0, policy = 0, model = 0;  // seconds
};

// The budget of the input at `position`, drawn by (seed, position) from the ranges or, under a
// curriculum, from the part of them that is in use there; an axis that is off gets its level. A
// time_budget() under a configuration for times.
Budget draw_budget(const TrainingConfig& config, uint64_t position);

// K schedules of every input, neighbours in the result, with rewards but without advantages. Throws
// Error for an input of the wrong length and whatever the model throws; Cancelled when `stop` was
// requested. `on_step` is told 0 before the dense pass, then the steps done.
std::vector<Schedule> roll_out(FrozenModel& model, const Policy& policy,
                               const TrainingConfig& config, std::span<const RolloutInput> inputs,
                               RolloutTimes* times = nullptr, std::stop_token stop = {},
                               const std::function<void(int step)>& on_step = {});

}  // namespace sol
