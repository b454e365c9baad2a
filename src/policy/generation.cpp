#include "policy/generation.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <iterator>
#include <span>

#include "base/fail.h"
#include "base/stopwatch.h"
#include "engine/request_checks.h"
#include "kernels/kernels.h"
#include "policy/cost_table.h"

namespace sol {
namespace {

std::vector<int32_t> checked_prompt(std::vector<int32_t> prompt, const LlamaConfig& config,
                                    const GenerationOptions& options) {
  if (prompt.empty()) fail("the prompt is empty; the model needs at least one token to start from");
  if (prompt.size() > static_cast<size_t>(config.max_position_embeddings))
    fail("the prompt has {} tokens, but the model's context is {}; shorten the prompt",
         prompt.size(), config.max_position_embeddings);
  if (options.max_tokens < -1)
    fail("the number of tokens to generate must be -1 (no limit) or more, not {}",
         options.max_tokens);
  // They are looked up in the logits before the model, which checks its tokens, sees them.
  for (const int32_t token : options.given) check_token(config, token);
  return prompt;
}

// As the engine computes it for a token that is known beforehand.
float log_probability(std::span<const float> logits, int32_t token) {
  float log_sum = 0, expected = 0;
  kernels::kernels().log_sum_exp(logits.data(), static_cast<int>(logits.size()), &log_sum,
                                 &expected);
  return logits[static_cast<size_t>(token)] - log_sum;
}

}  // namespace

std::string_view to_string(FinishReason reason) {
  switch (reason) {
    case FinishReason::none:
      return "not finished";
    case FinishReason::end_token:
      return "end of text";
    case FinishReason::stopped:
      return "stopped";
    case FinishReason::max_tokens:
      return "token limit";
    case FinishReason::context_end:
      return "context is full";
    case FinishReason::cancelled:
      return "cancelled";
  }
  return "";
}

Generation::Generation(FrozenModel& model, const Policy& policy, std::vector<int32_t> prompt,
                       const GenerationOptions& options, std::unique_ptr<Sequence> cached)
    : model_(model),
      options_(options),
      sampler_(options.sampling),
      tokens_(checked_prompt(std::move(prompt), model.config(), options)),
      controlled_(begin_controlled(
          cached ? std::move(cached) : model.create(options.sequence), policy, asked_budget(),
          options.horizon, episode_id(),
          // With a prompt of one token there is no previous position: the policy sees zeros.
          {.hidden = std::vector<float>(static_cast<size_t>(model.config().hidden_size), 0.0f),
           .log_prob = 0.0f})),
      logits_(static_cast<size_t>(model.config().vocab_size)),
      dense_length_(controlled_.sequence->length()) {
  assert(dense_length_ == 0 || dense_length_ + 2 <= static_cast<int>(tokens_.size()));
  controlled_.dense = options.dense;
  asked_share_ = static_cast<double>(controlled_.episode.budget().kappa);
  result_.prompt_tokens = static_cast<int>(tokens_.size());
  if (tokens_.size() > 1) controlled_.previous_token = tokens_[tokens_.size() - 2];
  if (options.max_tokens == 0) result_.finish = FinishReason::max_tokens;
}

EpisodeId Generation::episode_id() const {
  return {.sequence = options_.index,
          .episode = episode_index_,
          .rollout = options_.rollout,
          .single = true};
}

// After a wholly dense episode there is nothing to recompute.
bool Generation::refresh_due() const {
  return options_.refresh && compressed_ && controlled_.episode.finished();
}

int Generation::dense_due() const {
  if (finished()) return 0;
  if (refresh_due() && !refreshing_) return options_.horizon;
  // The cache is to hold all tokens but the last one: the prompt's, or the one just chosen, which
  // stands.
  return static_cast<int>(tokens_.size()) - 1 - controlled_.sequence->length();
}

ExtendItem Generation::next_dense(int count, std::vector<ExtendItem::Wanted> wanted) {
  assert(count > 0 && count <= dense_due());
  if (refresh_due() && !refreshing_) {
    model_.truncate(*controlled_.sequence, controlled_.sequence->length() - options_.horizon);
    refreshing_ = true;
  }
  const auto tokens = std::span<const int32_t>(tokens_).subspan(
      static_cast<size_t>(controlled_.sequence->length()), static_cast<size_t>(count));
  if (count < dense_due()) return {controlled_.sequence.get(), tokens, std::move(wanted)};
  // After the prompt drift is that of the embeddings (Controlled::previous_token).
  ExtendItem item = observed_extend(
      *controlled_.sequence, tokens, {.token = tokens_.back(), .prompt = result_.tokens.empty()},
      controlled_.policy->needs(), static_cast<size_t>(model_.config().hidden_size),
      controlled_.last);
  std::move(wanted.begin(), wanted.end(), std::back_inserter(item.wanted));
  return item;
}

void Generation::complete_dense(double seconds) {
  dense_length_ = controlled_.sequence->length();
  (refreshing_ ? result_.refresh_seconds : result_.prefill_seconds) += seconds;
  if (!refreshing_ || dense_due() > 0) return;
  refreshing_ = false;
  compressed_ = false;
  ++result_.refreshes;
}

ControlledStep Generation::next_step() {
  assert(!finished() && controlled_.state && dense_due() == 0);
  if (controlled_.episode.finished()) {
    ++episode_index_;
    begin_episode(controlled_, next_budget(), options_.horizon, episode_id());
    controlled_.dense = options_.dense;
    if (controlled_.episode.timed()) asked_share_ = static_cast<double>(asked_budget().kappa);
  }
  ControlledStep step{&controlled_, tokens_.back(), {}, &cost_, nullptr};
  step.out.logits = logits_.data();
  return step;
}

int Generation::middle_keys() const {
  return static_cast<int>(tokens_.size()) + options_.horizon / 2;
}

Budget Generation::asked_budget() const {
  return options_.budget_at ? options_.budget_at(middle_keys()) : options_.budget;
}

// So that the average over the steps so far and an episode more meets the budget, within the
// levels. What is older than four episodes is not made up for: it would be swings.
Budget Generation::next_budget() const {
  const Budget target = asked_budget();
  if (!options_.make_up || average_.count() == 0) return target;
  const double episodes = std::min(static_cast<double>(average_.count()) / options_.horizon, 4.0);
  const ActionSpace& space = controlled_.policy->space();
  if (const CostTable* costs = controlled_.policy->costs()) {
    const int keys = middle_keys();
    const double share = static_cast<double>(target.kappa) +
                         episodes * (result_.requested_time - result_.realised_time);
    const double lowest = costs->step_ms(space.kappa().front(), space.rho().front(), keys) /
                          costs->step_ms(1.0f, 1.0f, keys);
    return time_budget(static_cast<float>(std::clamp(share, std::min(lowest, 1.0), 1.0)));
  }
  const Budget realised = average_.mean_or({});
  const auto corrected = [&](Axis axis, float wanted, float spent) {
    const std::vector<float> levels = space.levels(axis);
    const auto asked = static_cast<double>(wanted) +
                       episodes * (static_cast<double>(wanted) - static_cast<double>(spent));
    return std::clamp(static_cast<float>(asked), levels.front(), levels.back());
  };
  return {corrected(Axis::kappa, target.kappa, realised.kappa),
          corrected(Axis::rho, target.rho, realised.rho),
          corrected(Axis::eta, target.eta, realised.eta)};
}

Action Generation::last_action() const {
  const Episode& episode = controlled_.episode;
  return episode.space().action(episode.previous_action());
}

int32_t Generation::complete_step() {
  const Action action = last_action();
  compressed_ = compressed_ || !action.dense();
  const int key_count = controlled_.sequence->length();
  last_effective_ = controlled_.episode.effective(key_count);
  if (last_effective_) {
    average_.add(action);
    if (const CostTable* costs = controlled_.policy->costs()) {
      const double dense = costs->step_ms(1.0f, 1.0f, key_count);
      time_.add(costs->step_ms(action.kappa, action.rho, key_count), dense);
      requested_time_.add(asked_share_ * dense, dense);
      result_.realised_time = time_.share_or(1.0);
      result_.requested_time = requested_time_.share_or(1.0);
    }
    result_.effective_steps = average_.count();
    result_.realised = average_.mean_or({});
  }
  ++result_.steps;
  sum_attended_ += cost_.attended;
  result_.attended = sum_attended_ / result_.steps;
  result_.bytes += cost_.bytes;

  const size_t chosen = result_.tokens.size();
  const bool given = chosen < options_.given.size();
  const int32_t token =
      given ? options_.given[chosen]
            : sampler_.sample(logits_, static_cast<uint32_t>(chosen), options_.index);
  tokens_.push_back(token);
  result_.tokens.push_back(token);
  if (controlled_.policy->needs().surprisal) {
    controlled_.last.log_prob = log_probability(logits_, token);
    if (!std::isfinite(controlled_.last.log_prob)) fail("the model's logits are not finite");
  }
  const std::vector<int>& ends = model_.config().eos_token_ids;
  if (!given && !options_.ignore_end && std::find(ends.begin(), ends.end(), token) != ends.end())
    finish(FinishReason::end_token);
  else if (static_cast<int>(result_.tokens.size()) == options_.max_tokens)
    finish(FinishReason::max_tokens);
  else if (key_count >= model_.config().max_position_embeddings)
    finish(FinishReason::context_end);
  return token;
}

int Generation::dense_length(bool exact) const {
  return exact || compressed_ ? dense_length_ : controlled_.sequence->length();
}

std::unique_ptr<Sequence> Generation::fork_dense(bool exact) const {
  std::unique_ptr<Sequence> child = std::move(model_.fork(*controlled_.sequence, 1)[0]);
  model_.truncate(*child, dense_length(exact));
  return child;
}

void Generation::finish(FinishReason reason) {
  result_.finish = reason;
}

void run_dense(FrozenModel& model, std::span<Generation* const> generations, std::stop_token stop) {
  const Stopwatch stopwatch;
  std::vector<ExtendItem> items;
  std::vector<Generation*> running;
  for (Generation* generation : generations) {
    const int due = generation->dense_due();
    if (due == 0) continue;
    items.push_back(generation->next_dense(due));
    running.push_back(generation);
  }
  if (items.empty()) return;
  model.extend(items, stop);
  const double seconds = stopwatch.seconds() / static_cast<double>(running.size());
  for (Generation* generation : running) generation->complete_dense(seconds);
}

GenerationResult generate(FrozenModel& model, const Policy& policy, std::vector<int32_t> prompt,
                          const GenerationOptions& options,
                          const std::function<bool(int32_t)>& on_token, std::stop_token stop) {
  Generation generation(model, policy, std::move(prompt), options);
  GenerationResult& result = generation.result();
  Generation* const alone[] = {&generation};
  Stopwatch stopwatch;
  try {
    run_dense(model, alone, stop);
    stopwatch = {};
    while (!generation.finished()) {
      if (stop.stop_requested()) throw Cancelled();
      run_dense(model, alone, stop);
      ControlledStep step = generation.next_step();
      decode_step(model, {&step, 1}, &result.times);
      const int32_t token = generation.complete_step();
      if (on_token && !on_token(token)) generation.finish(FinishReason::stopped);
    }
  } catch (const Cancelled&) {
    generation.finish(FinishReason::cancelled);
  }
  result.total_seconds = stopwatch.seconds();
  return std::move(result);
}

}  // namespace sol
