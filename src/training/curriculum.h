// A curriculum over budgets, which is not in the paper: at the beginning budgets come from the high
// end of their ranges only, near the dense model, where few steps have to be cheap; the low end
// then falls linearly to the configured one.
#pragma once

#include <cstdint>

namespace sol {

struct TrainingConfig;

struct CurriculumOptions {
  double share = 0;     // of the run's updates, after which the whole ranges are in use; 0: off
  double width = 0.25;  // of each range, from its high end, that is in use at the beginning
};

// Inputs that a run reads for each AdamW step, on average over a collection.
double inputs_per_update(const TrainingConfig& config);

// Which share of each budget range, from its high end, is in use for the input at `position` in the
// training data; 1 is the whole. A function of the position alone, so that it depends neither on
// how inputs are batched nor on resumption.
double budget_range_share(const TrainingConfig& config, uint64_t position);

}  // namespace sol
