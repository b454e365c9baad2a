// The schedules that one update of the policy learns from: loader batches of inputs, rolled out by
// all processes together.
#pragma once

#include <functional>
#include <span>
#include <stop_token>
#include <vector>

#include "sol/policy.h"
#include "text/block_dataset.h"
#include "training/config.h"
#include "training/data_order.h"
#include "training/lanes.h"
#include "training/metrics.h"
#include "training/process_group.h"
#include "training/rollout.h"
#include "training/schedule.h"
#include "training/spending_price.h"

namespace sol {

struct Collection {
  // Of all processes, in the order of the data, with rewards and advantages; those of other
  // processes lack what only the policy network reads (hidden states, embeddings, features).
  std::vector<Schedule> schedules;
  RolloutTimes times;              // of this process
  double advantage_deviation = 0;  // before whitening, mean over loader batches
  int64_t inputs = 0;
  int64_t distilled = 0;  // inputs of which a schedule is distilled
};

struct CollectionCallbacks {
  std::function<void(int64_t steps)> on_batch{};  // steps collected so far
  std::function<void(int step)> on_rollout{};     // within a batch, as in roll_out
};

// What stays the same from one collection to the next.
struct CollectionPlan {
  FrozenModel& model;
  const BlockDataset& data;
  const TrainingConfig& config;
  Lanes lanes;
  ProcessGroup& group;
};

// Rolls out loader batches from `position` of the data on until there are config.target_steps.
// `prices`, unless null, charge them, and move with each batch.
// Throws Cancelled, on every process, when `stop` was requested on any.
Collection collect(const CollectionPlan& plan, const Policy& policy, DataOrder& order,
                   int64_t position, SpendingPrices* prices, const CollectionCallbacks& callbacks,
                   std::stop_token stop);

// Fills in what the schedules say: steps, reward, perplexity, budgets, penalty, times and rates.
void summarise(const Collection& collection, const TrainingConfig& config, CollectionMetrics& m);

}  // namespace sol
