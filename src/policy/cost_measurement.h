// Measures a cost table (cost_table.h) by timing a model's steps on this machine.
#pragma once

#include <functional>
#include <stop_token>
#include <vector>

#include "policy/cost_table.h"
#include "sol/frozen_model.h"

namespace sol {

struct CostMeasurement {
  SequenceOptions sequence;
  int horizon = 16;
  std::vector<int> lengths{64, 512, 1024};  // keys in the cache, ascending
  int repetitions = 5;                      // the fastest of so many, actions taken in turns
};

// Throws Error for lengths that the model's positions do not hold or that do not ascend, and for a
// horizon beyond them: before anything is measured, which takes minutes.
void check_measurement(const CostMeasurement& options, int positions);

struct MeasuredCosts {
  CostTable table;
  double busyness = 1;  // of the machine: a usual dense step's time by the fastest one's
};

// Times decode steps of one sequence of random tokens. What counts is the fastest of the
// repetitions: on a machine that has other things to do a step takes milliseconds longer now and
// then, or every other time, and a median is noise there. For the same reason no length is taken to
// cost more than a longer one. `progress` is called with the share done. Throws Error as
// check_measurement, before anything else, and Cancelled when `stop` was requested.
MeasuredCosts measure_costs(FrozenModel& model, const CostMeasurement& options,
                            const std::function<void(double)>& progress = {},
                            std::stop_token stop = {});

}  // namespace sol
