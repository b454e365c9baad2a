#include "policy/action_json.h"

#include <charconv>

#include "base/fail.h"

namespace sol {
namespace {

const Json& list(const Json& json, const char* field, const std::string& where) {
  if (!json.is_object()) fail("{}: the action space must be an object", where);
  const auto found = json.find(field);
  if (found == json.end() || !found->is_array())
    fail("{}: action space: \"{}\" must be a list", where, field);
  return *found;
}

std::vector<std::string> names(const Json& json, const char* field, const std::string& where) {
  std::vector<std::string> result;
  for (const Json& entry : list(json, field, where)) {
    if (!entry.is_string())
      fail("{}: action space: \"{}\" holds {}, expected text such as \"s60\" or \"q5\"", where,
           field, entry.dump());
    result.push_back(entry.get<std::string>());
  }
  return result;
}

}  // namespace

double shortest_decimal(float x) {
  char text[64];
  const auto [end, error] = std::to_chars(text, text + sizeof text, x);
  double value = x;
  if (error == std::errc()) std::from_chars(text, end, value);
  return value;
}

Json budget_to_json(const Budget& budget) {
  return {{"kappa", shortest_decimal(budget.kappa)},
          {"rho", shortest_decimal(budget.rho)},
          {"eta", shortest_decimal(budget.eta)}};
}

Budget budget_from_json(const Json& json, const std::string& where) {
  return {json_get<float>(json, "kappa", where), json_get<float>(json, "rho", where),
          json_get<float>(json, "eta", where)};
}

Json to_json(const SequenceOptions& sequence) {
  return {{"page_size", sequence.page_size},
          {"sinks", sequence.sinks},
          {"window", sequence.window},
          {"force_sinks", sequence.force_sinks}};
}

Json action_space_to_json(const ActionSpace& space) {
  Json keep = Json::array();
  for (const float kappa : space.kappa()) keep.push_back(shortest_decimal(kappa));
  return {{"keep", keep}, {"prune", space.prune_notation()}, {"quant", space.quant_notation()}};
}

ActionSpace action_space_from_json(const Json& json, const std::string& where) {
  std::vector<double> keep;
  for (const Json& entry : list(json, "keep", where)) {
    if (!entry.is_number())
      fail("{}: action space: \"keep\" holds {}, expected a number", where, entry.dump());
    keep.push_back(entry.get<double>());
  }
  const std::vector<std::string> prune = names(json, "prune", where);
  const std::vector<std::string> quant = names(json, "quant", where);
  try {
    return ActionSpace::from_notation(keep, prune, quant);
  } catch (const Error& error) {
    fail("{}: {}", where, error.what());
  }
}

}  // namespace sol
