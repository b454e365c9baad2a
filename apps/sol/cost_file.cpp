#include "cost_file.h"

#include "base/fail.h"
#include "base/file_io.h"
#include "policy/action_json.h"
#include "sol/frozen_model.h"

namespace sol::app {
namespace {

constexpr int format_version = 1;
// What a share drops depends on the model, options outside the paper and how pages are chosen: a
// table is of use to nobody who differs in these.
constexpr const char* decisive[] = {"model_fingerprint", "outside_paper"};

// What else decides times, of a run's description; and whose products are used.
constexpr const char* of_machine[] = {"device", "precision", "weights", "isa", "cpu", "threads"};

}  // namespace

void write_costs(const std::filesystem::path& path, const CostTable& costs, const RunInfo& run,
                 const SequenceOptions& sequence, bool deterministic) {
  Json circumstances = to_json(sequence);
  circumstances["deterministic"] = deterministic;
  const Json json{{"format_version", format_version},
                  {"costs", costs.to_json()},
                  {"measured_with", std::move(circumstances)},
                  {"run", to_json(run)}};
  write_file_atomically(path, to_text(json, 2) + "\n");
}

namespace {

Json read_document(const std::filesystem::path& path) {
  const std::string where = path.string();
  Json json = read_json(path);
  if (const int version = json_get<int>(json, "format_version", where); version != format_version)
    fail("{}: has format version {}; this program reads {}", where, version, format_version);
  for (const char* part : {"costs", "run", "measured_with"})
    if (!json.contains(part) || !json[part].is_object())
      fail("{}: is no cost table; make one with `sol calibrate`", where);
  json_get<bool>(json["measured_with"], "deterministic", where);
  return json;
}

void require_same(const std::string& where, const std::string& field, const Json& there,
                  const Json& here) {
  const auto text = [&](const Json& object) {
    return object.contains(field) ? to_text(object[field]) : "none";
  };
  if (text(there) != text(here))
    fail("{}: was measured with another {} ({}, here {}); measure again with `sol calibrate`",
         where, field, text(there), text(here));
}

// The table, checked for what holds wherever it is used.
CostTable costs_for(const Json& json, const std::string& where, const Json& run, int horizon,
                    const SequenceOptions& sequence) {
  for (const char* field : decisive) require_same(where, field, json["run"], run);
  const Json pages = to_json(sequence);
  for (const auto& entry : pages.items())
    require_same(where, entry.key(), json["measured_with"], pages);
  CostTable costs = CostTable::from_json(json["costs"], where);
  if (costs.horizon() != horizon)
    fail("{}: is for episodes of {} steps, here they have {}; measure again with `sol calibrate`",
         where, costs.horizon(), horizon);
  return costs;
}

}  // namespace

CostTable read_costs(const std::filesystem::path& path, const RunInfo& run, int horizon,
                     const SequenceOptions& sequence, bool deterministic) {
  const std::string where = path.string();
  const Json json = read_document(path), here = to_json(run);
  CostTable costs = costs_for(json, where, here, horizon, sequence);
  Json there = json["run"];
  if (!there.contains("device")) there["device"] = native_device;  // of before there was a choice
  for (const char* field : of_machine) require_same(where, field, there, here);
  require_same(where, "deterministic", json["measured_with"], {{"deterministic", deterministic}});
  return costs;
}

CostTable read_costs_of_model(const std::filesystem::path& path, const FrozenModel& model,
                              int horizon, const SequenceOptions& sequence) {
  const Json run{{"model_fingerprint", model.fingerprint()},
                 {"outside_paper", model.outside_paper()}};
  return costs_for(read_document(path), path.string(), run, horizon, sequence);
}

CostTable read_costs_to_train(const std::filesystem::path& path, const FrozenModel& model,
                              int horizon, const SequenceOptions& sequence) {
  CostTable costs = read_costs_of_model(path, model, horizon, sequence);
  if (!costs.saves_time())
    fail(
        "{}: by this table no share saves time (none of \"saved_ms\" and \"channels_saved_ms\" is "
        "more than 0), so there is nothing to learn from it; measure again with `sol calibrate`, "
        "on an idle machine or with a longer --context",
        path.string());
  return costs;
}

OutputKind cost_file_kind() {
  return {"a cost table of `sol calibrate`",
          fmt::format("{{\n  \"format_version\": {},\n  \"costs\": {{", format_version)};
}

}  // namespace sol::app
