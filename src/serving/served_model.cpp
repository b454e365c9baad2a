#include "serving/served_model.h"

#include <algorithm>

#include "policy/action_json.h"
#include "policy/policies.h"

namespace sol {

ActionSpace default_space() {
  return ActionSpace({0.1f, 0.2f, 0.3f, 0.4f, 0.5f, 0.6f, 0.7f, 0.8f, 0.9f, 1.0f},
                     {0.3f, 0.4f, 0.5f, 0.6f, 0.7f, 0.8f, 0.9f, 1.0f},
                     {5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16});
}

void use_controller(ServedModel& served, Controller controller, const std::string& name) {
  served.controller = std::move(controller);
  served.controller_name = name;
  served.sequence = served.controller->settings().sequence;
  served.horizon = served.controller->settings().horizon;
  served.learned = served.controller->greedy_policy(served.deterministic);
  served.fixed = make_fixed_policy(served.controller->space());
}

void use_fixed_policy(ServedModel& served, const SequenceOptions& sequence, int horizon) {
  served.sequence = sequence;
  served.horizon = horizon;
  served.fixed = make_fixed_policy(default_space());
}

Budget lowest_budget(const ServedModel& served) {
  const ActionSpace& space = served.space();
  const auto lowest = [&](Axis axis) {
    const float level = space.levels(axis).front();
    if (!served.controller) return level;
    return std::max(level, static_cast<float>(served.controller->settings().ranges[axis].low));
  };
  return {lowest(Axis::kappa), lowest(Axis::rho), lowest(Axis::eta)};
}

std::optional<NetRange> net_range(const ServedModel& served, bool learned) {
  if (learned) {
    const auto& frontier = served.controller->settings().frontier;
    if (frontier.empty()) return std::nullopt;
    return NetRange{frontier.front().net_keep, frontier.back().net_keep};
  }
  // Every axis at the same share: down to where the axis with the highest lowest level ends.
  double low = 0.0;
  const Budget lowest = lowest_budget(served);
  const ActionSpace& space = served.space();
  // As people write them: 0.3 is a level, although float32 has 0.300000012 in its place.
  if (space.on(Axis::kappa)) low = std::max(low, shortest_decimal(lowest.kappa));
  if (space.on(Axis::rho)) low = std::max(low, shortest_decimal(lowest.rho));
  if (space.on(Axis::eta)) low = std::max(low, shortest_decimal(lowest.eta));
  return NetRange{low, 1.0};
}

}  // namespace sol
