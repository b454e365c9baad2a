#include "cost_file.h"

#include "base/fail.h"
#include "base/file_io.h"
#include "device.h"

namespace sol::app {
namespace {

constexpr int format_version = 1;
// What decides times: of a run's description these ...
constexpr const char* decisive[] = {"model_fingerprint", "device",       "precision",
                                    "weights",           "isa",          "cpu",
                                    "threads",           "outside_paper"};

// ... and how pages are chosen and whose products are used.
Json circumstances(const SequenceOptions& sequence, bool deterministic) {
  return {{"page_size", sequence.page_size},
          {"sinks", sequence.sinks},
          {"window", sequence.window},
          {"force_sinks", sequence.force_sinks},
          {"deterministic", deterministic}};
}

}  // namespace

void write_costs(const std::filesystem::path& path, const CostTable& costs, const RunInfo& run,
                 const SequenceOptions& sequence, bool deterministic) {
  const Json json{{"format_version", format_version},
                  {"costs", costs.to_json()},
                  {"measured_with", circumstances(sequence, deterministic)},
                  {"run", to_json(run)}};
  write_file_atomically(path, to_text(json, 2) + "\n");
}

namespace {

Json read_document(const std::filesystem::path& path) {
  const std::string where = path.string();
  Json json = read_json(path);
  if (const int version = json_get<int>(json, "format_version", where); version != format_version)
    fail("{}: has format version {}; this program reads {}", where, version, format_version);
  if (!json.contains("costs") || !json.contains("run") || !json.contains("measured_with"))
    fail("{}: is no cost table; make one with `sol calibrate`", where);
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

CostTable costs_for_horizon(const Json& json, const std::string& where, int horizon) {
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
  const Json json = read_document(path);
  const Json here = to_json(run), with = circumstances(sequence, deterministic);
  Json there = json["run"];
  if (!there.contains("device")) there["device"] = native_device;  // of before there was a choice
  for (const char* field : decisive) require_same(where, field, there, here);
  for (const auto& entry : with.items())
    require_same(where, entry.key(), json["measured_with"], with);
  return costs_for_horizon(json, where, horizon);
}

CostTable read_costs_of_model(const std::filesystem::path& path, const std::string& fingerprint,
                              int horizon, const SequenceOptions& sequence) {
  const std::string where = path.string();
  const Json json = read_document(path);
  require_same(where, "model_fingerprint", json["run"], {{"model_fingerprint", fingerprint}});
  const Json with = circumstances(sequence, false);
  for (const char* field : {"page_size", "sinks", "window"})
    require_same(where, field, json["measured_with"], with);
  return costs_for_horizon(json, where, horizon);
}

CostTable read_costs_to_train(const std::filesystem::path& path, const std::string& fingerprint,
                              int horizon, const SequenceOptions& sequence) {
  CostTable costs = read_costs_of_model(path, fingerprint, horizon, sequence);
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
