// Which levels the policy chose in a collection.
#pragma once

#include <array>
#include <span>
#include <vector>

#include "sol/action_space.h"
#include "training/metrics.h"
#include "training/schedule.h"

namespace sol {

// Over all steps of the schedules; per axis every level of the space, ascending.
std::array<std::vector<LevelCount>, 3> count_actions(const ActionSpace& space,
                                                     std::span<const Schedule> schedules);

}  // namespace sol
