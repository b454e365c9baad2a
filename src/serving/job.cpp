#include "serving/job.h"

#include <algorithm>
#include <cmath>

#include "base/fail.h"
#include "base/threads.h"
#include "kernels/kernels.h"

namespace sol {
namespace {

// Logits of scored prompts kept at a time, in values: 64 MiB.
constexpr int64_t most_prompt_logits = int64_t{16} << 20;

TokenOutput prompt_output(int32_t token) {
  TokenOutput out;
  out.token = token;
  out.in_prompt = true;
  return out;
}

// What the answer's text goes on from: also what is scored step by step before it.
std::vector<int32_t> tokens_before(const JobRequest& request) {
  if (!request.continues) return {};
  std::vector<int32_t> tokens = request.prompt;
  tokens.insert(tokens.end(), request.options.given.begin(), request.options.given.end());
  return tokens;
}

}  // namespace

Job::Job(JobRequest request, const ServedModel& served, std::shared_ptr<Outbox> outbox,
         size_t index)
    : request_(std::move(request)),
      served_(served),
      outbox_(std::move(outbox)),
      index_(index),
      text_(*served.tokenizer, tokens_before(request_)),
      stops_(request_.stops) {
  if (request_.dial.ms_per_token)
    latency_.emplace(*served.costs, *request_.dial.ms_per_token, lowest_budget(served),
                     request_.dial.policy->costs()
                         ? std::optional(served.controller->settings().time)
                         : std::nullopt);
}

int Job::most_tokens() const {
  // The last token that is generated is never cached.
  return static_cast<int>(request_.prompt.size()) + std::max(request_.options.max_tokens, 1) - 1;
}

void Job::begin(std::unique_ptr<Sequence> cached, int together) {
  waited_ = since_submitted_.seconds();
  cached_tokens_ = cached ? cached->length() : 0;
  GenerationOptions options = request_.options;
  options.budget = request_.dial.budget;
  // The fixed policy carries over by itself, and a time has a loop of its own.
  options.make_up = request_.dial.policy == served_.learned && !latency_;
  if (latency_) {
    options.budget = latency_->next(static_cast<int>(request_.prompt.size()), 0, 0.0, together);
    options.dense = LatencyTarget::is_dense(options.budget);
  }
  generation_ = std::make_unique<Generation>(*served_.model, *request_.dial.policy, request_.prompt,
                                             options, std::move(cached));
  // Nothing scores the first token of a text, nor what precedes the steps that do.
  const size_t unscored = !request_.show_prompt   ? 0
                          : request_.score_prompt ? 1
                                                  : request_.prompt.size();
  for (size_t i = 0; i < unscored; ++i) outbox_->put(index_, prompt_output(request_.prompt[i]));
}

int Job::piece(int allowed) const {
  const int due = dense_due();
  if (!in_prompt()) return due;  // a refresh is part of the step that follows
  if (request_.score_prompt)
    allowed = std::min<int64_t>(
        allowed, std::max<int64_t>(1, most_prompt_logits / served_.model->config().vocab_size));
  return std::min(due, allowed);
}

ExtendItem Job::next_dense(int count) {
  std::vector<ExtendItem::Wanted> wanted;
  piece_tokens_ = 0;
  if (request_.score_prompt && in_prompt()) {
    const auto vocab = static_cast<size_t>(served_.model->config().vocab_size);
    piece_tokens_ = count;
    piece_begin_ = static_cast<int>(request_.prompt.size()) - 1 - dense_due();
    prompt_logits_.resize(static_cast<size_t>(count) * vocab);
    for (size_t i = 0; i < static_cast<size_t>(count); ++i)
      wanted.push_back({i, {.logits = prompt_logits_.data() + i * vocab}});
  }
  return generation_->next_dense(count, std::move(wanted));
}

void Job::complete_dense(double seconds) {
  generation_->complete_dense(seconds);
  if (piece_tokens_ > 0) put_prompt_scores();
}

// The row after token i of the prompt scores token i + 1.
void Job::put_prompt_scores() {
  const auto vocab = static_cast<size_t>(served_.model->config().vocab_size);
  std::vector<TokenOutput> outputs(static_cast<size_t>(piece_tokens_));
  parallel_for(piece_tokens_, [&](int64_t i) {
    TokenOutput& out = outputs[static_cast<size_t>(i)];
    out = prompt_output(request_.prompt[static_cast<size_t>(piece_begin_ + i + 1)]);
    score({prompt_logits_.data() + static_cast<size_t>(i) * vocab, vocab}, out.token, out);
  });
  for (TokenOutput& out : outputs) outbox_->put(index_, std::move(out));
  piece_tokens_ = 0;
  if (dense_due() == 0) prompt_logits_ = {};
}

void Job::score(std::span<const float> logits, int32_t token, TokenOutput& out) const {
  if (!request_.logprobs) return;
  float norm = 0, mean = 0;
  kernels::kernels().log_sum_exp(logits.data(), static_cast<int>(logits.size()), &norm, &mean);
  if (!std::isfinite(norm)) fail("the model's logits are not finite");
  const auto log_prob = [&](int32_t id) { return logits[static_cast<size_t>(id)] - norm; };
  out.log_prob = log_prob(token);
  // The likeliest by insertion: there are at most 20 of them.
  const auto wanted = std::min(static_cast<size_t>(*request_.logprobs), logits.size());
  std::vector<int32_t> best;
  for (size_t i = 0; i < logits.size() && wanted > 0; ++i) {
    if (best.size() == wanted && !(logits[i] > logits[static_cast<size_t>(best.back())])) continue;
    const auto place = std::ranges::find_if(
        best, [&](int32_t other) { return logits[i] > logits[static_cast<size_t>(other)]; });
    best.insert(place, static_cast<int32_t>(i));
    if (best.size() > wanted) best.pop_back();
  }
  for (const int32_t id : best) out.top.push_back({id, log_prob(id)});
}

ControlledStep Job::next_step(int together) {
  take_next_budget(together);
  return generation_->next_step();
}

// A budget holds for an episode.
void Job::take_next_budget(int together) {
  if (!latency_) return;
  const GenerationResult& so_far = generation_->result();
  if (so_far.steps == 0 || so_far.steps % request_.options.horizon != 0) return;
  const Budget budget = latency_->next(static_cast<int>(generation_->tokens().size()),
                                       static_cast<int>(so_far.tokens.size()) - 1,
                                       1e3 * (last_token_ - first_token_), together);
  generation_->set_budget(budget, LatencyTarget::is_dense(budget));
}

void Job::complete_step(double policy_seconds) {
  const int32_t token = generation_->complete_step();
  const size_t count = generation_->result().tokens.size();
  const double now = since_submitted_.seconds();
  last_gap_ = now - (count == 1 ? 0.0 : last_token_);
  last_token_ = now;
  if (count == 1)
    first_token_ = now;
  else
    policy_seconds_ += policy_seconds;

  last_ = {};
  last_.token = token;
  last_.action = generation_->last_action();
  last_.effective = generation_->last_effective();
  last_.in_prompt = count <= request_.options.given.size();
  score(generation_->logits(), token, last_);
  delivered_ = false;
}

void Job::deliver() {
  if (delivered_) return;
  delivered_ = true;
  if (!last_.in_prompt && !request_.no_answer) {
    // The end token is not text, and neither is what follows a stop string.
    last_.text = stops_.push(text_.push(last_.token));
    // Also where this token was the last one allowed: the text ends where the client wanted it to.
    if (stops_.met()) generation_->finish(FinishReason::stopped);
  }
  if (last_.in_prompt || !request_.no_answer) outbox_->put(index_, std::move(last_));
  if (generation_->finished()) end(generation_->result().finish);
}

void Job::end(FinishReason reason) {
  // Until the outcome is out it has not ended: who breaks it off now says so to the client.
  outbox_->finish(index_, outcome(reason));
  ended_ = true;
}

void Job::break_off(std::exception_ptr error) noexcept {
  Outcome broken;
  broken.error = std::move(error);
  outbox_->finish(index_, std::move(broken));
  ended_ = failed_ = true;
}

Outcome Job::outcome(FinishReason reason) {
  Outcome outcome;
  // What would have come after the prompt decides nothing where nobody asked for it.
  outcome.finish = request_.no_answer ? FinishReason::max_tokens : reason;
  if (!generation_) return outcome;
  if (!generation_->finished()) generation_->finish(reason);
  outcome.text = stops_.push(text_.finish());
  outcome.before = text_.before();
  outcome.text += stops_.finish();
  // A character that the end cut off may complete one.
  if (stops_.met() && !request_.no_answer && reason != FinishReason::cancelled)
    outcome.finish = FinishReason::stopped;
  outcome.result = generation_->result();
  outcome.cached_tokens = cached_tokens_;
  const double seconds = last_token_ - first_token_;
  const auto count = static_cast<double>(outcome.result.tokens.size());
  if (count > 1 && seconds > 0) {
    outcome.ms_per_token = 1e3 * seconds / (count - 1);
    outcome.policy_share = policy_seconds_ / seconds;
    outcome.refresh_share = outcome.result.refresh_seconds / seconds;
  }
  if (latency_) {
    const int middle =
        static_cast<int>(generation_->tokens().size() - outcome.result.tokens.size() / 2);
    outcome.fastest_ms = latency_->fastest_ms(middle);
    outcome.dense_ms = latency_->dense_ms(middle);
  }
  return outcome;
}

}  // namespace sol
