#include "evaluation/schedule_file.h"

#include <algorithm>
#include <cmath>

#include "base/fail.h"
#include "base/file_io.h"
#include "base/hash.h"
#include "base/json.h"
#include "policy/action_json.h"
#include "policy/policies.h"

namespace sol {

namespace {

constexpr const char* format_name = "sol-schedules";

std::string tokens_fingerprint(std::span<const int32_t> ids) {
  return hash_128(std::as_bytes(ids));
}

template <typename T>
std::vector<T> read_numbers(const Json& object, const char* field, const std::string& where) {
  const auto found = object.find(field);
  if (found == object.end() || !found->is_array())
    fail("{}: field \"{}\" should be an array of numbers", where, field);
  std::vector<T> values;
  for (const Json& value : *found) {
    // Wrapped up, so that it is converted and checked as any other field is.
    values.push_back(json_get<T>(Json{{field, value}}, field, where));
  }
  return values;
}

RecordedBlock read_block(const Json& object, const ScheduleRecord& record,
                         const std::string& where) {
  RecordedBlock block;
  block.block = json_get<int64_t>(object, "block", where);
  if (block.block < 0) fail("{}: there is no block {}", where, block.block);
  block.tokens = json_get<std::string>(object, "tokens", where);
  block.actions = read_numbers<int>(object, "actions", where);
  block.log_probs = read_numbers<float>(object, "log_probs", where);
  const auto horizon = static_cast<size_t>(record.horizon);
  if (block.actions.size() != horizon || block.log_probs.size() != horizon)
    fail("{}: {} actions and {} log-probabilities for a horizon of {}", where, block.actions.size(),
         block.log_probs.size(), horizon);
  for (const int action : block.actions)
    if (action < 0 || action >= record.space.size())
      fail("{}: action {} is outside 0..{}", where, action, record.space.size() - 1);
  return block;
}

}  // namespace

ScheduleRecord make_schedule_record(const Policy& policy, const Budget& budget,
                                    const FrozenModel& model, const BlockDataset& data,
                                    const BlockEvaluator& evaluator,
                                    std::span<const BlockResult> results) {
  const ProtocolOptions& options = evaluator.options();
  ScheduleRecord record{.policy = policy.name(),
                        .budget = budget,
                        .model_fingerprint = model.fingerprint(),
                        .space = policy.space(),
                        .context = options.context,
                        .horizon = options.horizon,
                        .sequence = options.sequence,
                        .blocks = {}};
  if (results.size() != evaluator.indices().size())
    fail("a record of {} blocks was given {} results", evaluator.indices().size(), results.size());
  for (size_t b = 0; b < results.size(); ++b) {
    const int64_t index = evaluator.indices()[b];
    record.blocks.push_back(
        {index, tokens_fingerprint(data.block(index)), results[b].actions, results[b].log_probs});
  }
  return record;
}

void write_schedules(const std::filesystem::path& path, const ScheduleRecord& record) {
  Json blocks = Json::array();
  for (const RecordedBlock& block : record.blocks)
    blocks.push_back({{"block", block.block},
                      {"tokens", block.tokens},
                      {"actions", block.actions},
                      {"log_probs", block.log_probs}});
  Json json = {{"format", format_name},
               {"format_version", ScheduleRecord::format_version},
               {"policy", record.policy},
               {"budget", budget_to_json(record.budget)},
               {"model_fingerprint", record.model_fingerprint},
               {"kappa_levels", record.space.kappa()},
               {"rho_levels", record.space.rho()},
               {"bits_levels", record.space.bits()},
               {"context", record.context},
               {"horizon", record.horizon}};
  json.update(to_json(record.sequence));
  json["blocks"] = std::move(blocks);
  write_file_atomically(path, to_text(json) + "\n");
}

OutputKind schedule_file_kind() {
  return {"a record of schedules", fmt::format("{{\"format\":\"{}\",", format_name)};
}

ScheduleRecord read_schedules(const std::filesystem::path& path) {
  const std::string where = path.string();
  const Json json = read_json(path, uint64_t{1} << 30);
  if (!json.is_object() || json_get<std::string>(json, "format", where) != format_name)
    fail("{}: not a file of recorded schedules (its \"format\" should be \"{}\")", where,
         format_name);
  const int version = json_get<int>(json, "format_version", where);
  if (version != ScheduleRecord::format_version)
    fail("{}: format version {}, but this program reads version {}", where, version,
         ScheduleRecord::format_version);
  ScheduleRecord record{
      .policy = json_get<std::string>(json, "policy", where),
      .budget = {},
      .model_fingerprint = json_get<std::string>(json, "model_fingerprint", where),
      .space = ActionSpace(read_numbers<float>(json, "kappa_levels", where),
                           read_numbers<float>(json, "rho_levels", where),
                           read_numbers<int>(json, "bits_levels", where)),
      .context = 0,
      .horizon = 0,
      .sequence = {},
      .blocks = {}};
  const auto budget = json.find("budget");
  if (budget == json.end() || !budget->is_object())
    fail("{}: field \"budget\" is missing or no object", where);
  record.budget = budget_from_json(*budget, where);
  check_budget(record.budget);
  const auto count = [&](const char* field, int low) {
    constexpr int high = 1 << 24;  // no sum of settings overflows
    const int value = json_get<int>(json, field, where);
    if (value < low || value > high)
      fail("{}: {} = {} must be from {} to {}", where, field, value, low, high);
    return value;
  };
  record.context = count("context", 1);
  record.horizon = count("horizon", 1);
  record.sequence.page_size = count("page_size", 1);
  record.sequence.sinks = count("sinks", 0);
  record.sequence.window = count("window", 0);
  record.sequence.force_sinks = json_get<bool>(json, "force_sinks", where);
  const auto blocks = json.find("blocks");
  if (blocks == json.end() || !blocks->is_array() || blocks->empty())
    fail("{}: field \"blocks\" should be an array of at least one block", where);
  for (size_t i = 0; i < blocks->size(); ++i) {
    const std::string here = fmt::format("{}: blocks[{}]", where, i);
    if (!(*blocks)[i].is_object()) fail("{}: not an object", here);
    record.blocks.push_back(read_block((*blocks)[i], record, here));
  }
  return record;
}

std::unique_ptr<Policy> make_recorded_policy(const ScheduleRecord& record) {
  RecordedSchedules schedules;
  for (const RecordedBlock& block : record.blocks)
    schedules[{static_cast<uint64_t>(block.block), 0}] = block.actions;
  return make_replay_policy(record.space, std::move(schedules));
}

void require_same_source(const ScheduleRecord& record, const FrozenModel& model,
                         const BlockDataset& data) {
  if (record.model_fingerprint != model.fingerprint())
    fail("the schedules were recorded with the model {}, but this is {}", record.model_fingerprint,
         model.fingerprint());
  for (const RecordedBlock& block : record.blocks) {
    if (block.block >= data.size())
      fail("the schedules speak of block {}, but the data has {} blocks", block.block, data.size());
    if (tokens_fingerprint(data.block(block.block)) != block.tokens)
      fail("block {} is not the text that the schedules were recorded on", block.block);
  }
}

double largest_difference(const ScheduleRecord& record, std::span<const BlockResult> results) {
  if (results.size() != record.blocks.size())
    fail("{} blocks were recorded, but {} replayed", record.blocks.size(), results.size());
  double largest = 0;
  for (size_t b = 0; b < results.size(); ++b) {
    const auto &before = record.blocks[b].log_probs, &after = results[b].log_probs;
    if (before.size() != after.size())
      fail("block {}: {} steps were recorded, but {} replayed", record.blocks[b].block,
           before.size(), after.size());
    for (size_t t = 0; t < before.size(); ++t)
      largest = std::max(largest,
                         std::abs(static_cast<double>(before[t]) - static_cast<double>(after[t])));
  }
  return largest;
}

}  // namespace sol
