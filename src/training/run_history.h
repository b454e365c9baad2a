// What a training run has left in its directory so far, for tables and curves. Needs no LibTorch.
#pragma once

#include <filesystem>
#include <vector>

#include "base/json.h"
#include "training/metrics.h"

namespace sol {

struct RunHistory {
  std::vector<CollectionMetrics> collections;  // in order; at least one
  // What the run is: "config", "blocks" and "run" (docs/formats.md). From run.json, or the
  // controller's record where an earlier version has left none; null where there is neither.
  Json record;
};

// The lines of DIR/train.jsonl. A last line without a newline is still being written, or was when
// the run was killed, and is left out. Throws Error naming file and line for a malformed line, and
// for a log that is missing or has no finished line.
std::vector<CollectionMetrics> read_training_log(const std::filesystem::path& dir);

RunHistory read_run_history(const std::filesystem::path& dir);

}  // namespace sol
