#include "training/curriculum.h"

#include <algorithm>

#include "training/config.h"

namespace sol {
namespace {

int64_t divide_up(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}

}  // namespace

double inputs_per_update(const TrainingConfig& config) {
  const int64_t batch = int64_t{config.batch} * config.schedules;
  const int64_t batches = divide_up(config.target_steps, batch * config.horizon);
  const int64_t minibatches = divide_up(batches * batch, config.minibatch_schedules());
  return static_cast<double>(batches * config.batch) / static_cast<double>(minibatches) *
         config.grad_accum;
}

double budget_range_share(const TrainingConfig& config, uint64_t position) {
  const CurriculumOptions& curriculum = config.curriculum;
  if (curriculum.share <= 0) return 1.0;
  const double inputs = curriculum.share * config.updates * inputs_per_update(config);
  const double done = std::min(1.0, static_cast<double>(position) / inputs);
  return std::min(1.0, curriculum.width + done * (1.0 - curriculum.width));
}

}  // namespace sol
