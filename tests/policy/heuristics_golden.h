// Golden runs of the reference's hand-made baselines (golden/sol/heuristics.json; its "note" says
// what each field is).
#pragma once

#include <array>
#include <string>
#include <vector>

#include "base/json.h"
#include "sol/action_space.h"
#include "support_policy.h"

namespace sol::test {

inline const Json& heuristics() {
  static const Json json = read_json(test_data() / "golden/sol/heuristics.json");
  return json;
}

struct HeuristicRun {
  const Json& json;
  ActionSpace space;
  Budget target;
  int context, horizon, sinks, window;
  std::vector<int64_t> batch_sizes;

  explicit HeuristicRun(const Json& run)
      : json(run),
        space(space_of(run["set"].get<std::string>())),
        target{run["target"][0].get<float>(), run["target"][1].get<float>(),
               run["target"][2].get<float>()},
        context(run["context_len"].get<int>()),
        horizon(run["rollout_len"].get<int>()),
        sinks(run["Ts"].get<int>()),
        window(run["Tw"].get<int>()) {
    for (const Json& batch : run["ik"])
      batch_sizes.push_back(static_cast<int64_t>(batch[0].size()));
  }

  static ActionSpace space_of(const std::string& name) {
    const Json& set = heuristics()["sets"][name];
    return ActionSpace::from_notation(set["keep"].get<std::vector<double>>(),
                                      set["prune"].get<std::vector<std::string>>(),
                                      set["quant"].get<std::vector<std::string>>());
  }

  std::string name() const { return json["name"].get<std::string>(); }
  bool effective(int t) const { return context + 1 + t > sinks + window + 1; }  // t from 0
  int action(size_t batch, int t, size_t sequence) const {
    const auto level = [&](const char* axis) {
      return json[axis][batch][static_cast<size_t>(t)][sequence].get<int>();
    };
    return space.index(level("ik"), level("ip"), level("iq"));
  }
  std::array<float, 3> gamma() const {
    std::array<float, 3> values{0.35f, 0.35f, 0.35f};
    for (const auto& [key, value] : json["options"].items())
      for (const auto& [ending, axis] :
           {std::pair{"_keep", 0}, std::pair{"_prune", 1}, std::pair{"_quant", 2}})
        if (key.ends_with(ending)) values[static_cast<size_t>(axis)] = value.get<float>();
    return values;
  }
};

}  // namespace sol::test
