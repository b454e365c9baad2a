#include "evaluation/pollution.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/fail.h"
#include "base/random.h"
#include "evaluation/statistics.h"
#include "policy/policies.h"

namespace sol {
namespace {

std::vector<int64_t> draw_windows(int64_t available, int count, uint64_t seed) {
  if (count < 1) fail("KV pollution over {} windows", count);
  if (available < count)
    fail("KV pollution needs {} windows, but the text has only {} blocks", count, available);
  std::vector<int64_t> blocks(static_cast<size_t>(available));
  std::iota(blocks.begin(), blocks.end(), int64_t{0});
  Random random({seed, RandomStream::window, 0, 0, 0});
  for (size_t i = 0; i < static_cast<size_t>(count); ++i)
    std::swap(blocks[i], blocks[i + random.below(static_cast<uint32_t>(blocks.size() - i))]);
  blocks.resize(static_cast<size_t>(count));
  std::ranges::sort(blocks);
  return blocks;
}

// `corrupted` steps under the action, then `tail` dense ones, in every window.
std::unique_ptr<Policy> burst(const Action& action, const std::vector<int64_t>& windows,
                              const PollutionOptions& options) {
  const ActionSpace space = make_constant_policy(action)->space();
  std::vector<int> schedule(static_cast<size_t>(options.corrupted), space.index(action));
  schedule.resize(static_cast<size_t>(options.corrupted + options.tail), space.dense_index());
  RecordedSchedules schedules;
  for (const int64_t window : windows)
    schedules[{.sequence = static_cast<uint64_t>(window)}] = schedule;
  return make_replay_policy(space, std::move(schedules));
}

double percent_change(double nll_difference) {
  return 100 * std::expm1(nll_difference);
}

PollutionSetting compare(Axis axis, const Action& action, std::span<const BlockResult> dense,
                         std::span<const BlockResult> burst, const PollutionOptions& options) {
  const auto corrupted = static_cast<size_t>(options.corrupted);
  const auto tail = static_cast<size_t>(options.tail);
  const size_t windows = dense.size();
  PollutionSetting setting;
  setting.axis = axis;
  setting.action = action;
  double direct = 0, after = 0;
  std::vector<double> peaks(windows);
  std::vector<std::vector<double>> changes(tail, std::vector<double>(windows));
  for (size_t w = 0; w < windows; ++w) {
    const auto difference = [&](size_t step) {
      return static_cast<double>(dense[w].log_probs[step]) -
             static_cast<double>(burst[w].log_probs[step]);
    };
    for (size_t t = 0; t < corrupted; ++t) direct += difference(t);
    for (size_t t = 0; t < tail; ++t) {
      after += difference(corrupted + t);
      changes[t][w] = percent_change(difference(corrupted + t));
      peaks[w] = t == 0 ? changes[t][w] : std::max(peaks[w], changes[t][w]);
    }
  }
  const auto n = static_cast<double>(windows);
  setting.direct = percent_change(direct / (n * static_cast<double>(corrupted)));
  setting.tail = percent_change(after / (n * static_cast<double>(tail)));
  setting.peak_p90 = quantile(peaks, 0.9);
  for (std::vector<double>& step : changes) {
    setting.median.push_back(quantile(step, 0.5));
    setting.low.push_back(quantile(step, 0.1));
    setting.high.push_back(quantile(step, 0.9));
  }
  return setting;
}

}  // namespace

Pollution run_pollution(FrozenModel& model, const BlockDataset& blocks,
                        const PollutionOptions& options, const SweepProgress& progress,
                        std::stop_token stop) {
  if (options.corrupted < 1 || options.tail < 1)
    fail("KV pollution of {} corrupted and {} dense steps: both must be at least 1",
         options.corrupted, options.tail);
  const SequenceOptions& sequence = options.sequence;
  if (options.prefix <= sequence.sinks + sequence.window)
    fail(
        "KV pollution after {} dense tokens: with {} sinks and a window of {} its steps would be "
        "dense; it needs {} at least",
        options.prefix, sequence.sinks, sequence.window, sequence.sinks + sequence.window + 1);
  Pollution result;
  result.windows = draw_windows(blocks.size(), options.windows, options.seed);

  std::vector<std::pair<Axis, Action>> actions;
  for (const float kappa : options.kappa) actions.push_back({Axis::kappa, {.kappa = kappa}});
  for (const float rho : options.rho) actions.push_back({Axis::rho, {.rho = rho}});
  for (const int bits : options.bits) actions.push_back({Axis::eta, {.bits = bits}});

  std::vector<std::unique_ptr<Policy>> policies;
  policies.push_back(make_constant_policy(Action{}));
  for (const auto& [axis, action] : actions)
    policies.push_back(burst(action, result.windows, options));
  std::vector<Arm> arms;
  for (const auto& policy : policies) arms.push_back({policy.get(), Budget{}, 0});

  const ProtocolOptions protocol{.context = options.prefix,
                                 .horizon = options.corrupted + options.tail,
                                 .sequence = options.sequence,
                                 .batch = options.batch};
  BlockEvaluator evaluator(model, blocks, result.windows, protocol);
  const auto results = evaluator.run(arms, true, progress, stop);

  const std::span<const BlockResult> dense = results[0];
  double nll = 0;
  for (const BlockResult& window : dense)
    for (size_t t = static_cast<size_t>(options.corrupted); t < window.log_probs.size(); ++t)
      nll -= static_cast<double>(window.log_probs[t]);
  result.dense_perplexity = std::exp(nll / (static_cast<double>(options.tail) * options.windows));
  for (size_t i = 0; i < actions.size(); ++i)
    result.settings.push_back(
        compare(actions[i].first, actions[i].second, dense, results[i + 1], options));
  return result;
}

}  // namespace sol
