// What a training run needs in memory, before it starts.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "sol/frozen_model.h"
#include "training/config.h"

namespace sol {

struct MemoryItem {
  std::string what;
  uint64_t bytes = 0;
};

// Of one process of a run of `processes`, beside the model's weights. Counted from the shapes of
// what is held at the time of most need, and what the program with its libraries takes.
struct MemoryPlan {
  std::vector<MemoryItem> items;
  // What the GPU holds that executes the model, the weights included; empty where none does.
  std::vector<MemoryItem> gpu_items;
  uint64_t total() const;  // of items
};
// `deterministic`: as of the run, whose gradients then are summed by lanes (training/lanes.h).
// `precision`: of the cache, where it is to be another than the model's.
MemoryPlan plan_memory(const FrozenModel& model, const TrainingConfig& config, int processes,
                       bool deterministic = false, Precision precision = Precision::automatic);

// A machine that trains, alone or with others.
struct MachineMemory {
  int processes = 1;           // on it
  int all_processes = 1;       // of the run
  uint64_t weights = 0;        // bytes of the model as loaded
  uint64_t available = 0;      // bytes for everything, the weights included
  bool deterministic = false;  // the run, as its --deterministic says

  static MachineMemory alone(int processes, uint64_t weights, uint64_t available,
                             bool deterministic = false) {
    return {processes, processes, weights, available, deterministic};
  }
};

// How often a machine's memory holds the weights: native processes share them, on a LibTorch device
// each loads its own.
int weight_copies(const FrozenModel& model, int processes);

// Of all of the machine's processes, with the weights.
uint64_t memory_needed(const FrozenModel& model, const TrainingConfig& config,
                       const MachineMemory& machine);

// What may be lowered so that the run fits, as a sentence with values that do: one setting where
// one will do, else two; empty where nothing needs to be. Says so where nothing would help.
std::string advice_to_fit(const FrozenModel& model, const TrainingConfig& config,
                          const MachineMemory& machine);

// "3.2 GiB", "12 MiB".
std::string format_bytes(uint64_t bytes);

// Throws Error with what is needed, what is there and what to lower, when the run does not fit.
void require_memory(const FrozenModel& model, const TrainingConfig& config,
                    const MachineMemory& machine);

// Before a model is loaded: throws Error when the least that its files' weights can take, loaded
// with `options`, is more than `available` bytes already. `dir` as in load_model.
void require_memory_of_weights(const std::filesystem::path& dir, const ModelOptions& options,
                               uint64_t available);

}  // namespace sol
