// Everything a resumed run needs, in one file: OUT/checkpoint/state.safetensors. Tensors hold the
// policy, AdamW's moments and the accumulated gradients; the metadata's "state" is JSON with the
// counters and the run's identity. Random state is the counters themselves: every draw is keyed by
// them (base/random.h).
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "base/json.h"
#include "policy/network.h"
#include "training/adamw.h"
#include "training/metrics.h"

namespace sol {

struct TrainingState {
  int64_t collections = 0;    // finished
  int64_t position = 0;       // inputs read by them
  int64_t minibatches = 0;    // in the accumulated gradients
  int64_t updates = 0;        // AdamW steps
  double seconds = 0;         // spent so far, all runs together
  CollectionMetrics metrics;  // of the last collection
  Parameters parameters, gradients;
  std::map<std::string, AdamW::Moments> moments;
};

// Replaces the file atomically: an older checkpoint stays valid until the new one is complete.
// Throws Error when it cannot be written or the state is not finite; the old one is intact then.
void save_checkpoint(const std::filesystem::path& path, const TrainingState& state,
                     const Json& identity);

// Throws Error naming the file when it is malformed or damaged, of another format version or
// belongs to another run: `identity` must agree, and the message names the first difference. A
// counter out of range, a state that is not finite and tensors that are missing or not of a policy
// network of `shape` are malformed.
TrainingState load_checkpoint(const std::filesystem::path& path, const Json& identity,
                              const PolicyNetworkShape& shape);

}  // namespace sol
