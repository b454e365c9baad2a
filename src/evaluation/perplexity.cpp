#include "evaluation/perplexity.h"

#include <algorithm>
#include <cmath>

#include "base/fail.h"
#include "base/stopwatch.h"
#include "policy/controlled.h"
#include "policy/cost_table.h"

namespace sol {

namespace {

// Blocks whose dense prefixes are computed together: enough rows for the matrix products, few
// enough that their caches stay small beside the model.
constexpr size_t prefill_together = 8;

}  // namespace

struct BlockEvaluator::Prefix {
  std::unique_ptr<Sequence> sequence;
  LastPosition last;
  uint64_t kept_bytes = 0;  // > 0: stays in memory for later arms, at this cost
};

struct BlockEvaluator::Job {
  size_t block;  // position within indices_
  size_t arm;
};

BlockEvaluator::BlockEvaluator(FrozenModel& model, const BlockDataset& blocks,
                               std::vector<int64_t> indices, const ProtocolOptions& options,
                               uint64_t keep_bytes)
    : model_(model),
      blocks_(blocks),
      indices_(std::move(indices)),
      options_(options),
      keep_bytes_(keep_bytes) {
  check_protocol(options_, model_.config());
  if (blocks_.block_length() != options_.block_length())
    fail("the data is cut into blocks of {} ids, but a context of {} and {} steps need {}",
         blocks_.block_length(), options_.context, options_.horizon, options_.block_length());
  if (indices_.empty()) fail("there is no block to evaluate");
  for (const int64_t index : indices_)
    if (index < 0 || index >= blocks_.size())
      fail("block {} does not exist: the data has {} blocks", index, blocks_.size());
  prefixes_.resize(indices_.size());
}

BlockEvaluator::~BlockEvaluator() = default;

void BlockEvaluator::prefill(size_t first, size_t count, const Policy::Needs& needs,
                             std::stop_token stop) {
  const auto context = static_cast<size_t>(options_.context);
  std::vector<std::unique_ptr<Prefix>> made;
  std::vector<ExtendItem> items;
  std::vector<size_t> where;
  for (size_t i = first; i < first + count; ++i) {
    // A kept prefix may lack what only some policies ask for.
    if (prefixes_[i] && !(needs.entropy && prefixes_[i]->last.entropy < 0) &&
        !(needs.surprisal && std::isnan(prefixes_[i]->last.log_prob)))
      continue;
    if (prefixes_[i]) release(i, 1);
    auto prefix = std::make_unique<Prefix>();
    prefix->sequence = model_.create(options_.sequence);
    const auto ids = blocks_.block(indices_[i]);
    items.push_back(observed_extend(
        *prefix->sequence, ids.first(context), {.token = ids[context], .prompt = true}, needs,
        static_cast<size_t>(model_.config().hidden_size), prefix->last));
    made.push_back(std::move(prefix));
    where.push_back(i);
  }
  if (items.empty()) return;
  model_.extend(items, stop);
  for (size_t k = 0; k < made.size(); ++k) {
    const uint64_t bytes = made[k]->sequence->own_bytes();
    if (kept_bytes_ + bytes <= keep_bytes_) {
      made[k]->kept_bytes = bytes;
      kept_bytes_ += bytes;
    }
    prefixes_[where[k]] = std::move(made[k]);
  }
}

void BlockEvaluator::release(size_t first, size_t count) {
  for (size_t i = first; i < first + count; ++i) {
    if (prefixes_[i]) kept_bytes_ -= prefixes_[i]->kept_bytes;
    prefixes_[i].reset();
  }
}

void BlockEvaluator::decode(std::span<const Job> jobs, std::span<const Arm> arms, bool keep_actions,
                            std::vector<std::vector<BlockResult>>& results, std::stop_token stop) {
  const size_t n = jobs.size();
  const auto last_of_prefix = static_cast<size_t>(options_.context - 1);
  std::vector<Controlled> controlled;
  controlled.reserve(n);
  for (size_t begin = 0; begin < n;) {
    size_t end = begin;
    while (end < n && jobs[end].block == jobs[begin].block) ++end;
    const size_t block = jobs[begin].block;
    const Prefix& prefix = *prefixes_[block];
    auto children = model_.fork(*prefix.sequence, static_cast<int>(end - begin));
    for (size_t j = begin; j < end; ++j) {
      const Arm& arm = arms[jobs[j].arm];
      const EpisodeId id{.sequence = static_cast<uint64_t>(indices_[block]),
                         .rollout = arm.rollout};
      controlled.push_back(begin_controlled(std::move(children[j - begin]), *arm.policy, arm.budget,
                                            options_.horizon, id, prefix.last,
                                            blocks_.block(indices_[block])[last_of_prefix]));
    }
    begin = end;
  }

  std::vector<float> log_probs(n);
  std::vector<StepCost> costs(n);
  std::vector<ControlledStep> steps(n);
  for (int t = 1; t <= options_.horizon; ++t) {
    if (stop.stop_requested()) throw Cancelled();
    for (size_t j = 0; j < n; ++j) {
      const auto ids = blocks_.block(indices_[jobs[j].block]);
      const auto position = static_cast<size_t>(options_.context + t);
      steps[j] = ControlledStep{};
      steps[j].controlled = &controlled[j];
      steps[j].token = ids[position - 1];
      steps[j].out.target = ids[position];
      steps[j].out.log_prob = &log_probs[j];
      steps[j].cost = &costs[j];
    }
    const Stopwatch watch;
    decode_step(model_, steps);
    if (options_.timed) results[jobs[0].arm][jobs[0].block].seconds += watch.seconds();
    for (size_t j = 0; j < n; ++j) {
      if (!std::isfinite(log_probs[j]))
        fail(
            "block {}, step {}, policy {}: the log-probability is not finite; the model's weights "
            "or the arithmetic are broken",
            indices_[jobs[j].block], t, arms[jobs[j].arm].policy->name());
      BlockResult& result = results[jobs[j].arm][jobs[j].block];
      result.nll -= static_cast<double>(log_probs[j]);
      result.attended += costs[j].attended;
      if (keep_actions) result.log_probs.push_back(log_probs[j]);
    }
  }
  for (size_t j = 0; j < n; ++j) {
    BlockResult& result = results[jobs[j].arm][jobs[j].block];
    const Episode& done = controlled[j].episode;
    result.steps = done.steps();
    result.effective_steps = done.effective_steps();
    result.realised = done.realised();
    result.attended /= options_.horizon;
    if (options_.costs) result.time = time_share(done);
    if (keep_actions) result.actions = done.executed();
  }
  if (options_.timed) {
    BlockResult& result = results[jobs[0].arm][jobs[0].block];
    result.seconds += refresh_seconds(jobs[0].block, controlled[0], stop);
  }
}

// Of an episode after the context, by the protocol's costs.
double BlockEvaluator::time_share(const Episode& episode) const {
  TimeAverage time;
  int keys = options_.context;
  for (const int index : episode.executed()) {
    if (!episode.effective(++keys)) continue;
    const Action action = episode.space().action(index);
    time.add(options_.costs->step_ms(action.kappa, action.rho, keys),
             options_.costs->step_ms(1.0f, 1.0f, keys));
  }
  return time.share_or(1.0);
}

// What it takes to replace the T decoded tokens' keys and values by a dense pass's.
double BlockEvaluator::refresh_seconds(size_t block, Controlled& controlled, std::stop_token stop) {
  const ActionSpace& space = controlled.policy->space();
  const std::vector<int>& executed = controlled.episode.executed();
  const bool dense =
      std::ranges::all_of(executed, [&](int action) { return space.action(action).dense(); });
  if (dense) return 0;
  const auto tokens =
      blocks_.block(indices_[block])
          .subspan(static_cast<size_t>(options_.context), static_cast<size_t>(options_.horizon));
  const Stopwatch watch;
  model_.truncate(*controlled.sequence, options_.context);
  ExtendItem item = observed_extend(
      *controlled.sequence, tokens,
      {.token = blocks_.block(indices_[block])[static_cast<size_t>(options_.block_length() - 1)]},
      controlled.policy->needs(), static_cast<size_t>(model_.config().hidden_size),
      controlled.last);
  model_.extend({&item, 1}, stop);
  return watch.seconds();
}

std::vector<std::vector<BlockResult>> BlockEvaluator::run(std::span<const Arm> arms,
                                                          bool keep_actions,
                                                          const BlockProgress& progress,
                                                          std::stop_token stop) {
  Policy::Needs needs;
  for (const Arm& arm : arms) {
    check_budget(arm.budget);
    needs = needs_of_both(needs, arm.policy->needs());
  }
  const size_t blocks = indices_.size();
  std::vector<std::vector<BlockResult>> results(arms.size(), std::vector<BlockResult>(blocks));
  if (arms.empty()) return results;

  size_t done = 0;  // jobs
  for (size_t first = 0; first < blocks; first += prefill_together) {
    const size_t count = std::min(prefill_together, blocks - first);
    if (stop.stop_requested()) throw Cancelled();
    prefill(first, count, needs, stop);
    std::vector<Job> jobs;
    for (size_t block = first; block < first + count; ++block)
      for (size_t arm = 0; arm < arms.size(); ++arm) jobs.push_back({block, arm});
    const auto batch = options_.timed ? size_t{1} : static_cast<size_t>(options_.batch);
    for (size_t begin = 0; begin < jobs.size(); begin += batch) {
      const size_t size = std::min(batch, jobs.size() - begin);
      decode(std::span(jobs).subspan(begin, size), arms, keep_actions, results, stop);
      done += size;
      if (progress)
        progress(static_cast<int64_t>(done / arms.size()), static_cast<int64_t>(blocks));
    }
    for (size_t block = first; block < first + count; ++block)
      if (prefixes_[block]->kept_bytes == 0) release(block, 1);
  }
  return results;
}

double perplexity(std::span<const BlockResult> results) {
  double nll = 0;
  int64_t steps = 0;
  for (const BlockResult& result : results) {
    nll += result.nll;
    steps += result.steps;
  }
  if (steps == 0) fail("perplexity over no step at all");
  return std::exp(nll / static_cast<double>(steps));
}

Budget mean_realised(std::span<const BlockResult> results) {
  if (results.empty()) fail("realised averages of no block at all");
  double kappa = 0, rho = 0, eta = 0;
  for (const BlockResult& result : results) {
    kappa += static_cast<double>(result.realised.kappa);
    rho += static_cast<double>(result.realised.rho);
    eta += static_cast<double>(result.realised.eta);
  }
  const auto n = static_cast<double>(results.size());
  return {static_cast<float>(kappa / n), static_cast<float>(rho / n), static_cast<float>(eta / n)};
}

double mean_seconds(std::span<const BlockResult> results) {
  double seconds = 0;
  int64_t steps = 0;
  for (const BlockResult& result : results) {
    seconds += result.seconds;
    steps += result.steps;
  }
  if (steps == 0) fail("seconds per step of no step at all");
  return seconds / static_cast<double>(steps);
}

double mean_time(std::span<const BlockResult> results) {
  if (results.empty()) fail("the share of the dense time of no block at all");
  double sum = 0;
  for (const BlockResult& result : results) sum += result.time;
  return sum / static_cast<double>(results.size());
}

double mean_attended(std::span<const BlockResult> results) {
  if (results.empty()) fail("attended share of no block at all");
  double sum = 0;
  for (const BlockResult& result : results) sum += result.attended;
  return sum / static_cast<double>(results.size());
}

void check_protocol(const ProtocolOptions& options, const LlamaConfig& config) {
  if (options.context < 1 || options.horizon < 1 || options.batch < 1)
    fail("perplexity protocol: context ({}), horizon ({}) and batch ({}) must be positive",
         options.context, options.horizon, options.batch);
  const int64_t needed = int64_t{options.context} + options.horizon;
  if (needed > config.max_position_embeddings)
    fail(
        "a context of {} and {} decode steps need {} positions, but the model has {} "
        "(max_position_embeddings): ask for a shorter context",
        options.context, options.horizon, needed, config.max_position_embeddings);
  const int64_t sure = int64_t{options.sequence.sinks} + options.sequence.window + 1;
  if (needed <= sure)
    fail(
        "a context of {} and {} decode steps leave nothing to choose: up to {} keys (sinks, window "
        "and the current one) every step is dense; ask for a longer context",
        options.context, options.horizon, sure);
}

void check_budget(const Budget& budget) {
  const auto check = [](float value, const char* axis, const char* unit) {
    if (!(value >= 0.0f && value <= 1.0f))
      fail("a budget of {} for {} lies outside [0, 1]{}", value, axis, unit);
  };
  check(budget.kappa, "κ (share of keys)", "");
  check(budget.rho, "ρ (share of MLP channels)", "");
  check(budget.eta, "η (bits / 16)", "");
}

}  // namespace sol
