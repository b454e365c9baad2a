#include "training/rollout.h"

#include <cmath>

#include "base/fail.h"
#include "base/random.h"
#include "base/stopwatch.h"
#include "base/threads.h"
#include "policy/controlled.h"

namespace sol {
namespace {

float draw(const BudgetSource& source, double range_share, Random& random) {
  const double u = random.uniform_double();
  if (source.list.empty()) {
    const auto [whole_low, high] = source.range;
    const double low = range_share < 1 ? high - range_share * (high - whole_low) : whole_low;
    return static_cast<float>(low + u * (high - low));
  }
  const size_t index = static_cast<size_t>(u * static_cast<double>(source.list.size()));
  return static_cast<float>(source.list[std::min(index, source.list.size() - 1)]);
}

void log_softmax(std::span<float> x) {
  float highest = x[0];
  for (float v : x) highest = std::max(highest, v);
  double sum = 0;
  for (float v : x) sum += std::exp(static_cast<double>(v - highest));
  const float shift = highest + static_cast<float>(std::log(sum));
  for (float& v : x) v -= shift;
}

// KL(p ‖ q) in nats from log-probabilities.
double divergence(std::span<const float> log_p, std::span<const float> log_q) {
  double sum = 0;
  for (size_t i = 0; i < log_p.size(); ++i) {
    sum += std::exp(static_cast<double>(log_p[i])) * (static_cast<double>(log_p[i]) - log_q[i]);
  }
  return sum;
}

// The prefixes of a batch and what their dense pass left.
struct Prefixes {
  std::vector<std::unique_ptr<Sequence>> sequences;
  std::vector<LastPosition> last;
};

Prefixes prefill(FrozenModel& model, const TrainingConfig& config, const Policy::Needs& needs,
                 std::span<const RolloutInput> inputs, std::stop_token stop) {
  Prefixes out;
  std::vector<ExtendItem> items;
  out.last.resize(inputs.size());
  const size_t context = static_cast<size_t>(config.context);
  for (size_t i = 0; i < inputs.size(); ++i) {
    out.sequences.push_back(model.create(config.sequence));
    items.push_back(observed_extend(*out.sequences[i], inputs[i].ids.first(context),
                                    {.token = inputs[i].ids[context], .prompt = true}, needs,
                                    static_cast<size_t>(model.config().hidden_size), out.last[i]));
  }
  model.extend(items, stop);
  return out;
}

// Log-probabilities of the whole vocabulary at the T steps without any saving, [input][T][V].
std::vector<std::vector<float>> dense_distributions(FrozenModel& model, const Prefixes& prefixes,
                                                    const TrainingConfig& config,
                                                    std::span<const RolloutInput> inputs,
                                                    std::stop_token stop) {
  const size_t vocabulary = static_cast<size_t>(model.config().vocab_size);
  const size_t steps = static_cast<size_t>(config.horizon);
  std::vector<std::vector<float>> out(inputs.size(), std::vector<float>(steps * vocabulary));
  std::vector<std::unique_ptr<Sequence>> copies;
  std::vector<ExtendItem> items(inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    copies.push_back(std::move(model.fork(*prefixes.sequences[i], 1)[0]));
    items[i].sequence = copies[i].get();
    items[i].tokens = inputs[i].ids.subspan(static_cast<size_t>(config.context), steps);
    for (size_t t = 0; t < steps; ++t) {
      items[i].wanted.push_back({t, {.logits = out[i].data() + t * vocabulary}});
    }
  }
  model.extend(items, stop);
  parallel_for(static_cast<int64_t>(inputs.size() * steps), [&](int64_t j) {
    const size_t row = static_cast<size_t>(j);
    log_softmax(std::span(out[row / steps]).subspan(row % steps * vocabulary, vocabulary));
  });
  return out;
}

void append(Schedule& schedule, const StepRecord& record, float log_likelihood, float reward) {
  schedule.hidden.insert(schedule.hidden.end(), record.hidden.begin(), record.hidden.end());
  schedule.embedding.insert(schedule.embedding.end(), record.embedding.begin(),
                            record.embedding.end());
  schedule.features.push_back(record.features);
  schedule.previous_actions.push_back(record.previous_action);
  schedule.actions.push_back(record.action);
  schedule.effective.push_back(record.effective ? 1 : 0);
  schedule.log_likelihood.push_back(log_likelihood);
  schedule.rewards.push_back(reward);
  schedule.inference_log_probs.push_back(record.effective ? record.log_prob : 0.0f);
  if (record.surprisal >= 0) schedule.surprisal.push_back(record.surprisal);
}

}  // namespace

Budget draw_budget(const TrainingConfig& config, uint64_t position) {
  Random random({.seed = config.seed, .stream = RandomStream::budget, .block = position});
  const double range_share = budget_range_share(config, position);
  if (config.time) return time_budget(draw(*config.time, range_share, random));
  Budget budget;
  budget.kappa = draw(config.kappa, range_share, random);
  budget.rho = draw(config.rho, range_share, random);
  budget.eta = draw(config.eta, range_share, random);
  return config.space.clamp_off_axes(budget);
}

std::vector<Schedule> roll_out(FrozenModel& model, const Policy& policy,
                               const TrainingConfig& config, std::span<const RolloutInput> inputs,
                               RolloutTimes* times, std::stop_token stop,
                               const std::function<void(int step)>& on_step) {
  const size_t steps = static_cast<size_t>(config.horizon),
               group = static_cast<size_t>(config.schedules);
  const size_t context = static_cast<size_t>(config.context);
  for (const RolloutInput& input : inputs) {
    if (input.ids.size() != static_cast<size_t>(config.block_length())) {
      fail("rollout: an input of {} ids; context + horizon + 1 = {} are needed", input.ids.size(),
           config.block_length());
    }
  }
  if (on_step) on_step(0);
  const Stopwatch prefill_time;
  Prefixes prefixes = prefill(model, config, policy.needs(), inputs, stop);
  std::vector<std::vector<float>> dense;
  if (config.task_kl > 0) dense = dense_distributions(model, prefixes, config, inputs, stop);

  std::vector<Controlled> controlled;
  for (size_t i = 0; i < inputs.size(); ++i) {
    auto children = model.fork(*prefixes.sequences[i], config.schedules);
    for (size_t k = 0; k < group; ++k) {
      const EpisodeId id{.sequence = inputs[i].position, .rollout = static_cast<uint32_t>(k)};
      controlled.push_back(begin_controlled(std::move(children[k]), policy, inputs[i].budget,
                                            config.horizon, id, prefixes.last[i]));
    }
  }
  prefixes = {};  // the children hold what they share
  if (times) times->prefill += prefill_time.seconds();

  const size_t vocabulary = static_cast<size_t>(model.config().vocab_size);
  std::vector<Schedule> schedules(controlled.size());
  std::vector<ControlledStep> items(controlled.size());
  std::vector<StepRecord> records(controlled.size());
  std::vector<float> log_likelihood(controlled.size());
  std::vector<float> logits(config.task_kl > 0 ? controlled.size() * vocabulary : 0);
  StepTimes step_times;
  for (size_t t = 1; t <= steps; ++t) {
    if (stop.stop_requested()) throw Cancelled();
    for (size_t n = 0; n < controlled.size(); ++n) {
      const RolloutInput& input = inputs[n / group];
      records[n] = {};
      items[n] = {.controlled = &controlled[n],
                  .token = input.ids[context + t - 1],
                  .out = {.target = input.ids[context + t], .log_prob = &log_likelihood[n]},
                  .cost = nullptr,
                  .record = &records[n]};
      if (config.task_kl > 0) items[n].out.logits = logits.data() + n * vocabulary;
    }
    decode_step(model, items, &step_times);
    parallel_for(static_cast<int64_t>(controlled.size()), [&](int64_t j) {
      const size_t n = static_cast<size_t>(j);
      float reward = log_likelihood[n];
      if (config.task_kl > 0) {
        const auto executed = std::span(logits).subspan(n * vocabulary, vocabulary);
        log_softmax(executed);
        const auto ideal = std::span(dense[n / group]).subspan((t - 1) * vocabulary, vocabulary);
        reward -= static_cast<float>(config.task_kl * divergence(ideal, executed));
      }
      append(schedules[n], records[n], log_likelihood[n], reward);
    });
    if (on_step) on_step(static_cast<int>(t));
  }
  for (size_t n = 0; n < controlled.size(); ++n) {
    schedules[n].budget = controlled[n].episode.budget();
    schedules[n].realised = controlled[n].episode.realised();
    if (controlled[n].episode.timed())
      schedules[n].realised_time = controlled[n].episode.realised_time();
  }
  if (times) {
    times->policy += step_times.policy_seconds;
    times->model += step_times.model_seconds;
  }
  return schedules;
}

}  // namespace sol
