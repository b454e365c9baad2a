#include "training/time_plan.h"

#include <algorithm>
#include <vector>

#include "base/random.h"
#include "base/stopwatch.h"
#include "policy/policies.h"
#include "training/adamw.h"
#include "training/initialisation.h"
#include "training/rollout.h"
#include "training/torch_network.h"

namespace sol {
namespace {

constexpr int measured_steps = 3;
constexpr int short_context = 64;

struct Rollouts {
  RolloutTimes times;
  std::vector<Schedule> schedules;
};

// One rollout of random tokens, as training does them.
Rollouts roll_out_random(FrozenModel& model, const Policy& policy, TrainingConfig config, int batch,
                         int context) {
  config.batch = batch;
  config.context = context;
  config.horizon = std::min(config.horizon, measured_steps);
  std::vector<std::vector<int32_t>> ids(static_cast<size_t>(batch));
  std::vector<RolloutInput> inputs;
  for (size_t i = 0; i < ids.size(); ++i) {
    Random random({.seed = config.seed, .stream = RandomStream::test, .block = i});
    const auto vocabulary = static_cast<uint32_t>(model.config().vocab_size);
    for (int t = 0; t < config.block_length(); ++t)
      ids[i].push_back(static_cast<int32_t>(random.below(vocabulary)));
    inputs.push_back({.ids = ids[i], .position = i, .budget = draw_budget(config, i)});
  }
  Rollouts out;
  out.schedules = roll_out(model, policy, config, inputs, &out.times);
  return out;
}

// A schedule of T steps, its few measured ones over and over: what a gradient costs does not depend
// on what is in it.
Schedule lengthened(const Schedule& from, int horizon, int hidden_size) {
  Schedule out = from;
  const size_t have = static_cast<size_t>(from.steps()), d = static_cast<size_t>(hidden_size);
  for (size_t t = have; t < static_cast<size_t>(horizon); ++t) {
    const size_t s = t % have;
    const auto row = [&](const std::vector<float>& values, std::vector<float>& to) {
      const auto begin = values.begin() + static_cast<std::ptrdiff_t>(s * d);
      to.insert(to.end(), begin, begin + static_cast<std::ptrdiff_t>(d));
    };
    row(from.hidden, out.hidden);
    row(from.embedding, out.embedding);
    out.features.push_back(from.features[s]);
    if (!from.surprisal.empty()) out.surprisal.push_back(from.surprisal[s]);
    out.previous_actions.push_back(from.previous_actions[s]);
    out.actions.push_back(from.actions[s]);
    out.effective.push_back(1);
  }
  const size_t steps = static_cast<size_t>(horizon);
  out.old_log_probs.assign(steps, 0.0f);
  out.advantages.assign(steps, 0.1f);
  return out;
}

template <typename Call>
double seconds_of(const Call& call) {
  const Stopwatch time;
  call();
  return time.seconds();
}

void measure_update(TimePlan& plan, TorchNetwork& network, const TrainingConfig& config,
                    const std::vector<Schedule>& measured) {
  std::vector<Schedule> schedules;
  for (int i = 0; i < config.minibatch_schedules(); ++i)
    schedules.push_back(lengthened(measured[static_cast<size_t>(i) % measured.size()],
                                   config.horizon, network.shape().hidden_size));
  std::vector<const Schedule*> minibatch;
  for (const Schedule& s : schedules) minibatch.push_back(&s);
  const auto gradient = [&] { network.accumulate(minibatch, config.loss, config.grad_accum); };
  gradient();  // the first one makes the library choose its products
  plan.minibatch = seconds_of(gradient);
  plan.old_log_probs = seconds_of([&] { network.log_probs(minibatch, config.loss.temperature); });
  AdamW optimiser(network, config.optimiser);
  plan.step = seconds_of([&] { optimiser.step(network); });
  for (const std::string& name : network.names())
    plan.gradient_bytes += network.gradient(name).size_bytes();
}

}  // namespace

TimePlan measure_time(FrozenModel& model, const TrainingConfig& config, bool deterministic) {
  const PolicyNetworkShape shape = config.network_shape(model.config().hidden_size);
  const auto guard = config.budget_guard();
  TorchNetwork network(shape, initial_parameters(shape, config.seed), deterministic, guard);
  const auto policy = make_learned_policy(
      config.space, std::make_shared<const PolicyNetwork>(shape, network.parameters()),
      config.loss.temperature, config.seed, deterministic, nullptr, guard);
  const int near = std::min(short_context, config.context);
  const int steps = std::min(config.horizon, measured_steps);
  const auto roll = [&](int batch, int context) {
    return roll_out_random(model, *policy, config, batch, context);
  };
  roll(1, near);  // the first one makes memory and products
  const Rollouts one_near = roll(1, near), one_far = roll(1, config.context),
                 batch_near = roll(config.batch, near);

  TimePlan plan;
  plan.prefill = one_far.times.prefill * config.batch;
  const double attention = std::max(0.0, one_far.times.model - one_near.times.model);
  const double per_step = static_cast<double>(config.horizon) / steps;
  plan.decode = (batch_near.times.model + attention * config.batch) * per_step;
  plan.policy = batch_near.times.policy * per_step;
  const int64_t batch_steps = int64_t{config.batch} * config.schedules * config.horizon;
  plan.batches = std::max<int64_t>(1, (config.target_steps + batch_steps - 1) / batch_steps);
  const int64_t schedules = plan.batches * config.batch * config.schedules;
  const int64_t per_minibatch = config.minibatch_schedules();
  plan.minibatches = (schedules + per_minibatch - 1) / per_minibatch;
  plan.collections = static_cast<double>(config.updates) * config.grad_accum /
                     static_cast<double>(plan.minibatches);
  measure_update(plan, network, config, one_far.schedules);
  return plan;
}

double collection_seconds(const TimePlan& plan, const TrainingConfig& config, int processes,
                          double bytes_per_second) {
  if (processes == 1) return plan.collection(config.grad_accum);
  const double minibatches = static_cast<double>(plan.minibatches);
  const double steps = minibatches / config.grad_accum;
  // The sum over lanes goes around at every AdamW step and at the end of the collection, twice the
  // bytes each time: pieces to whoever sums them, sums to everybody.
  const double sums = (steps + 1) * 2 * static_cast<double>(plan.gradient_bytes) / bytes_per_second;
  const double shared = plan.rollouts() + minibatches * (plan.minibatch + plan.old_log_probs);
  return shared / processes + steps * plan.step + sums;
}

}  // namespace sol
