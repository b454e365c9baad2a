#include "training/collection.h"

#include <cmath>
#include <iterator>

#include "policy/axis.h"
#include "sol/error.h"
#include "training/action_counts.h"
#include "training/advantage.h"
#include "training/distillation.h"
#include "training/schedule_exchange.h"

namespace sol {
namespace {

// The process's own inputs of the loader batch that begins at `position`.
std::vector<RolloutInput> own_inputs(const CollectionPlan& plan, DataOrder& order,
                                     int64_t position) {
  std::vector<RolloutInput> out;
  for (int i = 0; i < plan.config.batch; ++i) {
    if (!plan.lanes.owns(plan.lanes.of_input(i))) continue;
    const uint64_t at = static_cast<uint64_t>(position + i);
    out.push_back({.ids = plan.data.block(order.block(position + i)),
                   .position = at,
                   .budget = draw_budget(plan.config, at)});
  }
  return out;
}

std::vector<Schedule> roll_out_together(const CollectionPlan& plan, const Policy& policy,
                                        DataOrder& order, int64_t position, RolloutTimes& times,
                                        const std::function<void(int step)>& on_step,
                                        std::stop_token stop) {
  const TrainingConfig& config = plan.config;
  std::vector<Schedule> own;
  bool stopped = stop.stop_requested();
  try {
    if (!stopped)
      own = roll_out(plan.model, policy, config, own_inputs(plan, order, position), &times, stop,
                     on_step);
  } catch (const Cancelled&) {
    stopped = true;  // the others wait to hear of it
  }
  if (plan.group.size() == 1) {
    if (stopped) throw Cancelled();
    return own;
  }
  std::vector<Schedule> batch(static_cast<size_t>(config.batch) *
                              static_cast<size_t>(config.schedules));
  for (size_t i = 0, next = 0; i < batch.size() && next < own.size(); ++i)
    if (plan.lanes.owns_schedule(i)) batch[i] = std::move(own[next++]);
  if (!exchange_schedules(batch, config.horizon, plan.lanes, stopped, plan.group))
    throw Cancelled();
  return batch;
}

}  // namespace

Collection collect(const CollectionPlan& plan, const Policy& policy, DataOrder& order,
                   int64_t position, SpendingPrices* prices, const CollectionCallbacks& callbacks,
                   std::stop_token stop) {
  const TrainingConfig& config = plan.config;
  Collection out;
  int64_t steps = 0, batches = 0;
  double deviations = 0;
  while (steps < config.target_steps) {
    std::vector<Schedule> schedules = roll_out_together(plan, policy, order, position + out.inputs,
                                                        out.times, callbacks.on_rollout, stop);
    out.inputs += config.batch;
    if (prices) prices->charge(schedules, config.schedules);
    deviations += assign_advantages(schedules, config.schedules, config.advantage, &config.space);
    if (prices) prices->adjust(schedules, config.schedules);
    if (config.loss.distil > 0)
      out.distilled += mark_best_schedules(schedules, config.schedules, config.distil_tolerance);
    ++batches;
    steps += static_cast<int64_t>(schedules.size()) * config.horizon;
    std::move(schedules.begin(), schedules.end(), std::back_inserter(out.schedules));
    if (callbacks.on_batch) callbacks.on_batch(steps);
  }
  out.advantage_deviation = deviations / static_cast<double>(batches);
  return out;
}

void summarise(const Collection& collection, const TrainingConfig& config, CollectionMetrics& m) {
  m.actions = count_actions(config.space, collection.schedules);
  const double schedules = static_cast<double>(collection.schedules.size());
  const auto add = [](std::optional<double>& mean, double part) {
    mean = mean.value_or(0.0) + part;
  };
  for (const Schedule& s : collection.schedules) {
    m.steps += s.steps();
    for (float r : s.rewards) m.reward += r;
    for (float l : s.log_likelihood) m.log_likelihood += l;
    for (Axis axis : all_axes) {
      const size_t i = static_cast<size_t>(axis);
      const double requested = value(s.budget, axis), realised = value(s.realised, axis);
      m.realised[i] += realised / schedules;
      if (s.realised_time) continue;
      m.requested[i] += requested / schedules;
      m.gap[i] += std::abs(realised - requested) / schedules;
    }
    if (s.realised_time) {
      const double requested = s.budget.kappa, realised = *s.realised_time;
      add(m.requested_time, requested / schedules);
      add(m.realised_time, realised / schedules);
      add(m.time_gap, std::abs(realised - requested) / schedules);
    }
    m.penalty += s.penalty / schedules;
  }
  m.reward /= static_cast<double>(m.steps);
  m.log_likelihood /= static_cast<double>(m.steps);
  m.perplexity = std::exp(-m.log_likelihood);
  m.advantage_deviation = collection.advantage_deviation;
  m.distil_share =
      static_cast<double>(collection.distilled) / static_cast<double>(collection.inputs);
  m.seconds_prefill = collection.times.prefill;
  m.seconds_rollout = collection.times.model;
  m.seconds_policy = collection.times.policy;
  const auto rate = [](double tokens, double seconds) {
    return seconds > 0 ? tokens / seconds : 0.0;
  };
  m.prefill_tokens_per_second =
      rate(static_cast<double>(collection.inputs) * config.context, m.seconds_prefill);
  m.decode_tokens_per_second =
      rate(static_cast<double>(m.steps), m.seconds_rollout + m.seconds_policy);
}

}  // namespace sol
