// OUT/checkpoint.safetensors: everything a resumed run needs.
#pragma once

#include <filesystem>
#include <optional>

#include "base/json.h"
#include "engine.h"

namespace sol::pretrain {

struct Progress {
  int64_t tokens = 0;        // trained on so far
  int window = 0;            // of the current stage
  int64_t position = 0;      // windows of that length visited
  int64_t decay_begin = -1;  // tokens at which the final decay began; -1: not yet
  bool muon = false;         // some step was Muon's: matrices' moments are no longer AdamW's
  double seconds = 0;        // of all runs together
};

struct Checkpoint {
  Progress progress;
  EngineState state;
};

// Replaces the file atomically. Throws Error, with the old one intact, when it cannot be written or
// the weights are not finite.
void save_checkpoint(const std::filesystem::path& path, const Checkpoint& checkpoint,
                     const Json& identity);

// Throws Error naming the file when it is malformed or its `identity` (model, text, seed) is not
// this one; the message names the first difference.
Checkpoint load_checkpoint(const std::filesystem::path& path, const Json& identity);

}  // namespace sol::pretrain
