// The perplexity protocol: a dense pass over the context, then T teacher-forced steps under a
// policy (paper, "Training procedure"; docs/arithmetic.md, "Perplexity protocol").
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <stop_token>
#include <vector>

#include "sol/frozen_model.h"
#include "sol/policy.h"
#include "text/block_dataset.h"

namespace sol {

struct Controlled;

struct ProtocolOptions {
  int context = 1024;
  int horizon = 16;
  SequenceOptions sequence;  // page size, sinks, window
  int batch = 256;           // sequences decoded together; results do not depend on it
  // Not null: every arm's share of the dense time is counted by it, whatever the arm was asked for.
  std::shared_ptr<const CostTable> costs = nullptr;
  bool timed = false;  // decode every sequence alone and measure it, whatever `batch` says

  int block_length() const { return context + horizon + 1; }
};

// One policy at one requested budget.
struct Arm {
  const Policy* policy = nullptr;
  Budget budget;
  uint32_t rollout = 0;  // which random schedule
};

// What one arm did on one block.
struct BlockResult {
  double nll = 0;  // summed over the T steps, nats
  int steps = 0;
  int effective_steps = 0;
  Budget realised;      // nominal, over effective steps
  double attended = 0;  // share of keys really attended to, mean over steps
  double time = 1;      // share of the dense time over effective steps, where costs are given
  double seconds = 0;   // when timed: of the T steps, the policy's included, and of the dense pass
                        // over them that refreshes the cache (none after dense steps)
  std::vector<int> actions;      // executed schedule, filled when asked for
  std::vector<float> log_probs;  // of each target, nats; likewise
};

using BlockProgress = std::function<void(int64_t done, int64_t total)>;

// Runs arms on blocks. Between calls of run() the dense prefixes stay in memory as far as
// `keep_bytes` of cache allow, so that later arms on the same blocks (a baseline at the averages
// that a first pass realised) do not pay for them again.
class BlockEvaluator {
 public:
  // `model` and `blocks` must outlive this. Throws Error when there is no block, an index lies
  // outside the data, the block length is not context + T + 1, or the model has fewer positions.
  BlockEvaluator(FrozenModel& model, const BlockDataset& blocks, std::vector<int64_t> indices,
                 const ProtocolOptions& options, uint64_t keep_bytes = 0);
  ~BlockEvaluator();

  // results[arm][block]. Throws Error for a budget outside [0, 1] or a log-probability that is not
  // finite, Cancelled when `stop` was requested.
  std::vector<std::vector<BlockResult>> run(std::span<const Arm> arms, bool keep_actions = false,
                                            const BlockProgress& progress = {},
                                            std::stop_token stop = {});

  const std::vector<int64_t>& indices() const { return indices_; }
  const ProtocolOptions& options() const { return options_; }

 private:
  struct Prefix;
  struct Job;  // one arm on one block
  void prefill(size_t first, size_t count, const Policy::Needs& needs, std::stop_token stop);
  void release(size_t first, size_t count);
  void decode(std::span<const Job> jobs, std::span<const Arm> arms, bool keep_actions,
              std::vector<std::vector<BlockResult>>& results, std::stop_token stop);
  double time_share(const Episode& episode) const;
  double refresh_seconds(size_t block, Controlled& controlled, std::stop_token stop);

  FrozenModel& model_;
  const BlockDataset& blocks_;
  std::vector<int64_t> indices_;
  ProtocolOptions options_;
  uint64_t keep_bytes_, kept_bytes_ = 0;
  std::vector<std::unique_ptr<Prefix>> prefixes_;  // per index; null when not in memory
};

// exp(Σ nll / Σ steps).
double perplexity(std::span<const BlockResult> results);
// Mean over blocks of the realised averages.
Budget mean_realised(std::span<const BlockResult> results);
// Mean over blocks of the share of keys really attended to.
double mean_attended(std::span<const BlockResult> results);
// Mean over blocks of the share of the dense time.
double mean_time(std::span<const BlockResult> results);
// Seconds per step over all blocks; 0 unless they were timed.
double mean_seconds(std::span<const BlockResult> results);

// Throws Error unless context, horizon and batch are positive and the model has enough positions.
void check_protocol(const ProtocolOptions& options, const LlamaConfig& config);

// Throws Error naming the axis unless every share lies in [0, 1].
void check_budget(const Budget& budget);

}  // namespace sol
