// The perplexity protocol: a dense pass over the context, then T teacher-forced steps under a policy
// (paper, "Training procedure"; DESIGN, "Perplexity protocol").
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <stop_token>
#include <vector>

#include "text/block_dataset.h"
#include "sol/frozen_model.h"
#include "sol/policy.h"

namespace sol {

struct ProtocolOptions {
  int context = 1024;
  int horizon = 16;
  SequenceOptions sequence;  // page size, sinks, window
  int batch = 256;           // sequences decoded together; results do not depend on it
};

// One policy at one requested budget.
struct Arm {
  const Policy* policy = nullptr;
  Budget budget;
  uint32_t rollout = 0;  // which random schedule
};

// What one arm did on one block.
struct BlockResult {
  double nll = 0;            // summed over the T steps, nats
  int steps = 0;
  int effective_steps = 0;
  Budget realised;           // nominal, over effective steps
  double attended = 0;       // share of keys really attended to, mean over steps
  std::vector<int> actions;  // executed schedule, filled when asked for
};

// Runs every arm on every block: each block prefilled once and forked for every arm. Returns
// results[arm][block]. `progress` (blocks done, blocks in all) may be empty.
std::vector<std::vector<BlockResult>> evaluate_arms(
    FrozenModel& model, const BlockDataset& blocks, std::span<const int64_t> block_indices,
    std::span<const Arm> arms, const ProtocolOptions& options, bool keep_actions = false,
    const std::function<void(int64_t, int64_t)>& progress = {}, std::stop_token stop = {});

// exp(Σ nll / Σ steps).
double perplexity(std::span<const BlockResult> results);
// Mean over blocks of the realised averages.
Budget mean_realised(std::span<const BlockResult> results);

}  // namespace sol
