#include "policy/generation.h"

#include <algorithm>
#include <cassert>
#include <span>

#include "base/fail.h"
#include "base/stopwatch.h"

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
  return prompt;
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
                       const GenerationOptions& options)
    : model_(model),
      options_(options),
      sampler_(options.sampling),
      tokens_(checked_prompt(std::move(prompt), model.config(), options)),
      controlled_(begin_controlled(
          model.create(options.sequence), policy, options.budget, options.horizon, episode_id(),
          // With a prompt of one token there is no previous position: the policy sees zeros.
          std::vector<float>(static_cast<size_t>(model.config().hidden_size), 0.0f))),
      logits_(static_cast<size_t>(model.config().vocab_size)) {
  result_.prompt_tokens = static_cast<int>(tokens_.size());
  if (options.max_tokens == 0) result_.finish = FinishReason::max_tokens;
}

void Generation::start(std::stop_token stop) {
  const Stopwatch stopwatch;
  run_dense(std::span(tokens_).first(tokens_.size() - 1), stop);
  if (tokens_.size() > 1) controlled_.previous_token = tokens_[tokens_.size() - 2];
  result_.prefill_seconds = stopwatch.seconds();
}

void Generation::run_dense(std::span<const int32_t> tokens, std::stop_token stop) {
  if (tokens.empty()) return;
  // After the prompt drift is that of the embeddings (Controlled::previous_token).
  ExtendItem item = observed_extend(
      *controlled_.sequence, tokens, controlled_.policy->needs(),
      static_cast<size_t>(model_.config().hidden_size), controlled_.hidden,
      result_.tokens.empty() ? nullptr : &controlled_.earlier_hidden, controlled_.entropy);
  model_.extend({&item, 1}, stop);
}

EpisodeId Generation::episode_id() const {
  return {.sequence = options_.index, .episode = episode_index_, .rollout = 0, .single = true};
}

void Generation::refresh(std::stop_token stop) {
  const Stopwatch stopwatch;
  // The cache holds all tokens but the one chosen last, which stands.
  const int cached = controlled_.sequence->length();
  assert(cached + 1 == static_cast<int>(tokens_.size()));
  const int keep = cached - options_.horizon;
  model_.truncate(*controlled_.sequence, keep);
  run_dense(
      std::span(tokens_).subspan(static_cast<size_t>(keep), static_cast<size_t>(options_.horizon)),
      stop);
  compressed_ = false;
  ++result_.refreshes;
  result_.refresh_seconds += stopwatch.seconds();
}

ControlledStep Generation::next_step(std::stop_token stop) {
  assert(!finished() && controlled_.state);
  if (controlled_.episode.finished()) {
    // After a wholly dense episode there is nothing to recompute.
    if (options_.refresh && compressed_) refresh(stop);
    ++episode_index_;
    begin_episode(controlled_, options_.budget, options_.horizon, episode_id());
  }
  ControlledStep step{&controlled_, tokens_.back(), {}, &cost_, nullptr};
  step.out.logits = logits_.data();
  return step;
}

int32_t Generation::complete_step() {
  const Episode& episode = controlled_.episode;
  const Action action = episode.space().action(episode.previous_action());
  compressed_ = compressed_ || !action.dense();
  const int key_count = controlled_.sequence->length();
  if (episode.effective(key_count)) {
    average_.add(action);
    result_.effective_steps = average_.count();
    result_.realised = average_.mean_or({});
  }
  ++result_.steps;
  sum_attended_ += cost_.attended;
  result_.attended = sum_attended_ / result_.steps;
  result_.bytes += cost_.bytes;

  const int32_t token =
      sampler_.sample(logits_, static_cast<uint32_t>(result_.tokens.size()), options_.index);
  tokens_.push_back(token);
  result_.tokens.push_back(token);
  const std::vector<int>& ends = model_.config().eos_token_ids;
  if (!options_.ignore_end && std::find(ends.begin(), ends.end(), token) != ends.end())
    finish(FinishReason::end_token);
  else if (static_cast<int>(result_.tokens.size()) == options_.max_tokens)
    finish(FinishReason::max_tokens);
  else if (key_count >= model_.config().max_position_embeddings)
    finish(FinishReason::context_end);
  return token;
}

void Generation::finish(FinishReason reason) {
  result_.finish = reason;
}

GenerationResult generate(FrozenModel& model, const Policy& policy, std::vector<int32_t> prompt,
                          const GenerationOptions& options,
                          const std::function<bool(int32_t)>& on_token, std::stop_token stop) {
  Generation generation(model, policy, std::move(prompt), options);
  GenerationResult& result = generation.result();
  Stopwatch stopwatch;
  try {
    if (!generation.finished()) generation.start(stop);
    stopwatch = {};
    while (!generation.finished()) {
      if (stop.stop_requested()) throw Cancelled();
      ControlledStep step = generation.next_step(stop);
      decode_step(model, {&step, 1}, &result.times);
      const int32_t token = generation.complete_step();
      if (on_token && !on_token(token) && !generation.finished())
        generation.finish(FinishReason::stopped);
    }
  } catch (const Cancelled&) {
    generation.finish(FinishReason::cancelled);
  }
  result.total_seconds = stopwatch.seconds();
  return std::move(result);
}

}  // namespace sol
