// One pass of the clipped update over collected schedules.
#pragma once

#include <cstdint>
#include <span>

#include "training/adamw.h"
#include "training/config.h"
#include "training/lanes.h"
#include "training/process_group.h"
#include "training/schedule.h"
#include "training/torch_network.h"

namespace sol {

// Training and inference networks may differ by their order of summation only.
inline constexpr double network_tolerance = 1e-4;

// Fills old_log_probs of the process's own schedules with the training network's own
// log-probabilities. Returns the largest difference to the inference network's; throws Error when
// it exceeds network_tolerance.
double assign_old_log_probs(const TorchNetwork& network, std::span<Schedule> schedules,
                            const TrainingConfig& config, const Lanes& lanes = Lanes::single());

// Where an update stands: minibatches run on across collections.
struct UpdateCounters {
  int64_t minibatches = 0;  // accumulated since the last AdamW step
  int64_t updates = 0;
};

struct UpdateSummary {
  LossTerms mean;             // over minibatches; `steps` is a sum
  double gradient_norm = 0;   // of the last AdamW step, 0 when there was none
  double entropy_weight = 0;  // of the last minibatch
};

// Shuffles whole schedules by (seed, collection), cuts them into minibatches and accumulates
// gradients; at every grad_accum-th minibatch AdamW steps. The entropy's weight is that of the
// AdamW steps made so far. Ends early once `config.updates` is reached. `schedules` are those of
// all processes, whole ones in the process's own lanes; the gradients of the lanes are summed over
// the group before each AdamW step and at the end, after which all processes hold the same.
UpdateSummary update_policy(TorchNetwork& network, AdamW& optimiser,
                            std::span<const Schedule> schedules, const TrainingConfig& config,
                            int64_t collection, UpdateCounters& counters, const Lanes& lanes,
                            ProcessGroup& group);
// The same of a process on its own.
UpdateSummary update_policy(TorchNetwork& network, AdamW& optimiser,
                            std::span<const Schedule> schedules, const TrainingConfig& config,
                            int64_t collection, UpdateCounters& counters);

}  // namespace sol
