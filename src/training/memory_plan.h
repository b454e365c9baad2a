// What a training run needs in memory, before it starts.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sol/frozen_model.h"
#include "training/config.h"

namespace sol {

struct MemoryItem {
  std::string what;
  uint64_t bytes = 0;
};

// Of one process of `processes`, beside the model's weights. Counted from the shapes of what is
// held at the time of most need; allocators and libraries come to some hundred MiB more.
struct MemoryPlan {
  std::vector<MemoryItem> items;
  // What the GPU holds that executes the model, the weights included; empty where none does.
  std::vector<MemoryItem> gpu_items;
  uint64_t total() const;  // of items
};
MemoryPlan plan_memory(const FrozenModel& model, const TrainingConfig& config, int processes);

// What of the configuration may be lowered so that `processes` processes fit into `bytes`, as a
// sentence with values that do; empty where nothing needs to be. Says so where nothing would help.
std::string advice_to_fit(const FrozenModel& model, const TrainingConfig& config, int processes,
                          uint64_t bytes);

// "3.2 GiB", "12 MiB".
std::string format_bytes(uint64_t bytes);

// Throws Error with what is needed, what is there and what to lower, when `processes` processes do
// not fit into `available` bytes.
void require_memory(const FrozenModel& model, const TrainingConfig& config, int processes,
                    uint64_t available);

}  // namespace sol
