// What `sol train` and `sol plan` have in common: a configuration, and the model it is for.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "common.h"
#include "training/config.h"

namespace sol::app {

struct TrainingConfigFlags {
  std::filesystem::path file;
  std::vector<std::string> overrides;
  int updates = 0;  // 0: as the file says
  CLI::Option* seed = nullptr;
  double memory_limit = 0;  // GiB; 0: what the system has available

  // Bytes that training may take, the model included.
  uint64_t available() const;
};

// The configuration, --updates, --set, --memory-limit and the model's flags.
void add_training_config_flags(CLI::App& command, TrainingConfigFlags& flags, ModelFlags& model);

// The file with what the flags override. Throws Error as load_training_config does, and for a --set
// that is none.
TrainingConfig read_config(const TrainingConfigFlags& flags, uint64_t seed);

// Throws Error where so many processes cannot share a loader batch: before any of them is started.
void require_shareable(const TrainingConfig& config, int processes, bool deterministic);

// Throws Error where the model's weights alone need more than `available` bytes: before they are
// loaded. Those of a GPU's model are not in this machine's memory.
void require_weights_fit(const ModelFlags& model, uint64_t available);

}  // namespace sol::app
