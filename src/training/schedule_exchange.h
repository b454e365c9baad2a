// What processes tell each other about the schedules that they rolled out.
#pragma once

#include <span>
#include <vector>

#include "training/lanes.h"
#include "training/process_group.h"
#include "training/schedule.h"

namespace sol {

// Completes the schedules of a loader batch, of which every process has filled its own: actions,
// rewards and budgets of the others come from them, a few hundred bytes each. Hidden states stay
// where they are. Returns false, with nothing filled in, when any process says `stopped`.
bool exchange_schedules(std::span<Schedule> batch, int horizon, const Lanes& lanes, bool stopped,
                        ProcessGroup& group);

}  // namespace sol
