// One sequence to generate or to score: what the scheduler runs.
#pragma once

#include <atomic>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/stopwatch.h"
#include "policy/generation.h"
#include "policy/stop_strings.h"
#include "serving/continued_text.h"
#include "serving/dial.h"
#include "serving/fair_queue.h"
#include "serving/latency_target.h"
#include "serving/outbox.h"

namespace sol {

// What is to be done. Checked by whoever makes it: tokens in the vocabulary, lengths that fit.
struct JobRequest {
  std::vector<int32_t> prompt;
  GenerationOptions options;  // `given`: the rest of a text that is scored step by step
  ResolvedDial dial;
  std::vector<std::string> stops;
  std::optional<int> logprobs;  // how many alternatives; none: no log-probabilities at all
  bool show_prompt = false;     // the prompt's tokens are put out as well
  bool score_prompt = false;    // with log-probabilities, from the dense pass
  bool no_answer = false;       // the token after the prompt is computed, but not given out
  bool continues = false;       // the answer's text goes on from the prompt's
  Party party;                  // whose turn in the queue it takes
};

// Run by the scheduler on its thread; `cancel` may be called on any.
class Job {
 public:
  Job(JobRequest request, const ServedModel& served, std::shared_ptr<Outbox> outbox, size_t index);

  const JobRequest& request() const { return request_; }
  // Keys that the cache must hold for it at most.
  int most_tokens() const;

  void cancel() { cancelled_ = true; }
  bool cancelled() const { return cancelled_; }

  // Leaves the queue. `cached`: the prompt's first tokens, from another sequence, or null.
  // `together`: how many sequences will be decoded at a time.
  void begin(std::unique_ptr<Sequence> cached, int together);

  bool finished() const { return ended_; }
  bool failed() const { return failed_; }
  int dense_due() const { return generation_->dense_due(); }
  bool in_prompt() const { return generation_->result().steps == 0; }
  // How many of dense_due() a pass may take when so many may be computed for prompts.
  int piece(int allowed) const;

  ExtendItem next_dense(int count);
  // `seconds` of a pass that this was part of. Puts the scores of a prompt's tokens out.
  void complete_dense(double seconds);

  // `together`: how many sequences are decoded at a time now.
  ControlledStep next_step(int together);
  // The step's outcome; `policy_seconds` of the batch. What is put out later by deliver().
  void complete_step(double policy_seconds);
  // Puts the last step's token out, and the outcome when it was the last one.
  void deliver();

  // Ends it with what there is.
  void end(FinishReason reason);
  // Ends it with an error. Takes no memory.
  void break_off(std::exception_ptr error) noexcept;
  // Gives back its cache. It must have ended; no other call may follow but cancel().
  void release() { generation_.reset(); }

  const Generation& generation() const { return *generation_; }

  double seconds_running() const { return since_submitted_.seconds() - waited_; }
  double seconds_to_first_token() const { return first_token_; }
  double seconds_of_last_token() const { return last_gap_; }

 private:
  void score(std::span<const float> logits, int32_t token, TokenOutput& out) const;
  void put_prompt_scores();
  Outcome outcome(FinishReason reason);
  void take_next_budget(int together);

  const JobRequest request_;
  const ServedModel& served_;
  std::shared_ptr<Outbox> outbox_;
  size_t index_;
  std::atomic<bool> cancelled_{false};

  std::unique_ptr<Generation> generation_;
  ContinuedText text_;
  StopStrings stops_;
  std::optional<LatencyTarget> latency_;
  std::vector<float> prompt_logits_;  // of the piece at hand
  int piece_begin_ = 0, piece_tokens_ = 0;
  TokenOutput last_;
  bool delivered_ = true, ended_ = false, failed_ = false;
  int cached_tokens_ = 0;

  Stopwatch since_submitted_;
  double waited_ = 0, first_token_ = 0, last_token_ = 0, last_gap_ = 0;
  double policy_seconds_ = 0;  // from the second token on
};

}  // namespace sol
