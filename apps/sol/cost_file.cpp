#include "cost_file.h"

#include "base/fail.h"
#include "base/file_io.h"

namespace sol::app {
namespace {

constexpr int format_version = 1;
// What decides times; all of it is in a run's description.
constexpr const char* decisive[] = {
    "model_fingerprint", "precision", "weights", "isa", "cpu", "threads"};

}  // namespace

void write_costs(const std::filesystem::path& path, const CostTable& costs, const RunInfo& run) {
  const Json json{
      {"format_version", format_version}, {"costs", costs.to_json()}, {"run", to_json(run)}};
  write_file_atomically(path, to_text(json, 2) + "\n");
}

CostTable read_costs(const std::filesystem::path& path, const RunInfo& run, int horizon) {
  const std::string where = path.string();
  const Json json = read_json(path);
  if (const int version = json_get<int>(json, "format_version", where); version != format_version)
    fail("{}: has format version {}; this program reads {}", where, version, format_version);
  if (!json.contains("costs") || !json.contains("run"))
    fail("{}: is no cost table; make one with `sol calibrate`", where);
  const Json here = to_json(run), there = json["run"];
  for (const char* field : decisive)
    if (!there.contains(field) || there[field] != here[field])
      fail("{}: was measured with another {} ({}, here {}); measure again with `sol calibrate`",
           where, field, there.contains(field) ? to_text(there[field]) : "none",
           to_text(here[field]));
  CostTable costs = CostTable::from_json(json["costs"], where);
  if (costs.horizon() != horizon)
    fail("{}: is for episodes of {} steps, here they have {}; measure again with `sol calibrate`",
         where, costs.horizon(), horizon);
  return costs;
}

}  // namespace sol::app
