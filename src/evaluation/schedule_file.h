// Recorded schedules: which actions a policy chose on every block, and what came of it.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/output_file.h"
#include "evaluation/perplexity.h"

namespace sol {

struct RecordedBlock {
  int64_t block = 0;
  std::string tokens;            // fingerprint of the block's ids
  std::vector<int> actions;      // executed, T indices into the space
  std::vector<float> log_probs;  // of each target, nats
};

struct ScheduleRecord {
  static constexpr int format_version = 2;
  std::string policy;
  Budget budget;
  std::string model_fingerprint;
  ActionSpace space;
  int context = 0, horizon = 0;
  SequenceOptions sequence;
  std::vector<RecordedBlock> blocks;
};

// `results`: one arm's, made with keep_actions, on the evaluator's blocks.
ScheduleRecord make_schedule_record(const Policy& policy, const Budget& budget,
                                    const FrozenModel& model, const BlockDataset& data,
                                    const BlockEvaluator& evaluator,
                                    std::span<const BlockResult> results);

// JSON, written atomically.
void write_schedules(const std::filesystem::path& path, const ScheduleRecord& record);
OutputKind schedule_file_kind();

// Throws Error naming file and field for anything malformed or of another format version.
ScheduleRecord read_schedules(const std::filesystem::path& path);

// Plays each block's own schedule, whatever the budget; begin() throws Error for a block that was
// not recorded. `space` is the record's.
std::unique_ptr<Policy> make_recorded_policy(const ScheduleRecord& record);

// Throws Error unless the record was made with this model on this text.
void require_same_source(const ScheduleRecord& record, const FrozenModel& model,
                         const BlockDataset& data);

// Largest |difference| between the recorded log-probabilities and `results`, nats; the same blocks.
double largest_difference(const ScheduleRecord& record, std::span<const BlockResult> results);

}  // namespace sol
