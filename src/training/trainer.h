// Training of a controller: collect schedules, update the policy, again (docs/arithmetic.md,
// "Group-relative update").
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>

#include "policy/cost_table.h"
#include "sol/frozen_model.h"
#include "text/block_dataset.h"
#include "training/config.h"
#include "training/metrics.h"
#include "training/process_group.h"

namespace sol {

struct TrainerOptions {
  std::filesystem::path
      out;  // becomes a controller directory; train.jsonl and checkpoint/ lie in it
  std::filesystem::path initial{};  // a controller whose policy to start from; empty: a fresh one
  bool resume = false;              // from OUT/checkpoint; a start when there is none
  // What steps cost: with a configuration for times, and with no other.
  std::shared_ptr<const CostTable> costs = nullptr;
  bool overwrite = false;  // an OUT that holds a run or a controller already is an error otherwise
  std::string model_name{}, command{};  // for the record: the model's directory, as typed
  // As in ModelOptions, and LibTorch's part on one thread: then every thread count gives the same
  // controller, bit for bit.
  bool deterministic = false;
  // > 0: ends after so much time of this call, but not before a collection, whatever `updates`
  // says.
  double minutes = 0;
  // Of several processes that each call train_controller with the same model, data and
  // configuration; null: this process alone. Each rolls out its share of every loader batch; the
  // leading one, and no other, reads and writes `out`. Deterministic runs give the same controller
  // for every number of processes; others differ by the rounding of sums.
  ProcessGroup* group = nullptr;
};

// Progress within a collection.
struct BatchProgress {
  int64_t update = 0, updates = 0;
  int64_t steps = 0, target_steps = 0;  // collected so far
  double seconds_left = 0;              // estimated; 0 before the first collection
};

struct TrainingCallbacks {
  std::function<void(const CollectionMetrics&)> on_collection;
  std::function<void(const BatchProgress&)> on_batch;
  // Within a loader batch: 0 before the dense pass over its inputs, then the steps of `of` that its
  // schedules have done.
  std::function<void(int step, int of)> on_rollout{};
  std::function<void(const std::string&)> on_note;  // a new epoch, a checkpoint, a resumed run
};

struct TrainingOutcome {
  bool finished = false;  // OUT holds a controller; else stopped, with a checkpoint to resume from
  int64_t updates = 0;
  CollectionMetrics last;
};

// Throws Error where context and horizon together are more positions than the model has.
void require_positions(const LlamaConfig& model, const TrainingConfig& config);

// What train_controller refuses before any work, for a caller that has long data to prepare first:
// throws Error for a configuration that contradicts itself or does not fit the model's positions,
// an unwritable output directory, one that holds a model, a run already (unless resumed or
// overwritten), or, to be resumed, a controller without a checkpoint; costs without a budget of
// time, or the other way round.
void require_trainable(const LlamaConfig& model, const TrainingConfig& config,
                       const TrainerOptions& options);

// Trains until `config.updates` AdamW steps (those before a resumption included), the time limit or
// a requested stop, which is obeyed within one batch. For one instruction set and (unless
// deterministic) one thread count, an uninterrupted and a resumed run give the same controller bit
// for bit. Throws Error for an
// unwritable directory, data that does not fit the configuration, a checkpoint of another run, a
// full disk or a policy that has diverged (the old checkpoint stays valid), another run in the same
// directory, or training and inference networks that disagree.
TrainingOutcome train_controller(FrozenModel& model, const BlockDataset& data,
                                 const TrainingConfig& config, const TrainerOptions& options,
                                 const TrainingCallbacks& callbacks = {},
                                 std::stop_token stop = {});

}  // namespace sol
