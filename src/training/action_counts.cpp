#include "training/action_counts.h"

#include <fmt/format.h>

#include <string>

namespace sol {
namespace {

// 0.1, not what the float nearest to it is as a double.
double decimal(float level) {
  return std::stod(fmt::format("{}", level));
}

}  // namespace

std::array<std::vector<LevelCount>, 3> count_actions(const ActionSpace& space,
                                                     std::span<const Schedule> schedules) {
  std::array<std::vector<LevelCount>, 3> counts;
  for (const float level : space.kappa()) counts[0].push_back({decimal(level), 0});
  for (const float level : space.rho()) counts[1].push_back({decimal(level), 0});
  for (const int bits : space.bits()) counts[2].push_back({static_cast<double>(bits), 0});
  // Actions are numbered with κ slowest and bits fastest.
  const size_t rho_levels = counts[1].size(), bits_levels = counts[2].size();
  for (const Schedule& schedule : schedules)
    for (const int action : schedule.actions) {
      const auto index = static_cast<size_t>(action);
      ++counts[0][index / (rho_levels * bits_levels)].count;
      ++counts[1][index / bits_levels % rho_levels].count;
      ++counts[2][index % bits_levels].count;
    }
  return counts;
}

}  // namespace sol
