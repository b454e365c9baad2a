// What a training run needs in time, from a short measurement on this machine.
#pragma once

#include <cstdint>

#include "sol/frozen_model.h"
#include "training/config.h"

namespace sol {

// Seconds of one process.
struct TimePlan {
  double prefill = 0;           // of a loader batch
  double decode = 0;            // T steps of all its schedules
  double policy = 0;            // of the policy in them
  double minibatch = 0;         // its gradient
  double step = 0;              // of AdamW
  double old_log_probs = 0;     // of a minibatch
  int64_t batches = 1;          // loader batches of a collection
  int64_t minibatches = 1;      // of a collection
  double collections = 1;       // of the run
  uint64_t gradient_bytes = 0;  // what several processes exchange at an AdamW step

  double rollouts() const { return static_cast<double>(batches) * (prefill + decode + policy); }
  double update(int grad_accum) const {
    return static_cast<double>(minibatches) * (minibatch + old_log_probs + step / grad_accum);
  }
  double collection(int grad_accum) const { return rollouts() + update(grad_accum); }
};

// Measured on random tokens: the dense pass of one input, a few decode steps of one input's
// schedules at the whole context and of a batch's at a short one (their attention is added in
// proportion), one minibatch's gradient and one AdamW step. Takes about as long as a fifth of a
// batch.
// `deterministic`: as `sol train --deterministic`, but for its gradients in lanes.
TimePlan measure_time(FrozenModel& model, const TrainingConfig& config, bool deterministic);

// Seconds of a collection of `processes` on as many machines like this one: rollouts and gradients
// are shared, the AdamW step is everybody's own, and gradients go around at `bytes_per_second`.
double collection_seconds(const TimePlan& plan, const TrainingConfig& config, int processes,
                          double bytes_per_second);

}  // namespace sol
