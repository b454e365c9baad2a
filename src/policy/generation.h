// Text generation under a policy (docs/arithmetic.md, "Generation"): one sequence's episodes,
// refreshes and sampling. The command line runs one, a server many whose steps it batches.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <stop_token>
#include <string_view>
#include <vector>

#include "engine/sampling.h"
#include "policy/controlled.h"
#include "sol/frozen_model.h"
#include "sol/policy.h"

namespace sol {

struct GenerationOptions {
  SequenceOptions sequence;
  Budget budget;  // a time_budget() for a policy with costs
  // In place of `budget`, for requests that depend on the length: what an episode with so many keys
  // in the cache at its middle is asked for, as a time in milliseconds is another share at each
  // length (Controller::budget_for_ms).
  std::function<Budget(int keys)> budget_at;
  bool dense = false;   // every step, whatever the policy would do: it is not asked
  int horizon = 16;     // T: steps of an episode
  bool refresh = true;  // false: the policy restarts after T steps, the cache stays as it is
  // What earlier episodes spent beside the budget is made up for by what the next one is asked for:
  // for policies that forget it, as the learned one does.
  bool make_up = false;
  int max_tokens = -1;      // -1: up to the context's end
  bool ignore_end = false;  // go on after an end-of-text token
  SamplingOptions sampling;
  // The first tokens, taken instead of drawn ones: a text that is scored step by step, as it would
  // be generated. max_tokens counts them; an end-of-text token among them ends nothing.
  std::vector<int32_t> given;
  uint64_t index = 0;    // which sequence: for policies and draws that vary over sequences
  uint32_t rollout = 0;  // which random schedule, for policies that draw one whatever the sequence
};

enum class FinishReason { none, end_token, stopped, max_tokens, context_end, cancelled };
std::string_view to_string(FinishReason reason);

struct GenerationResult {
  std::vector<int32_t> tokens;  // generated, an end-of-text token included
  FinishReason finish = FinishReason::none;
  int prompt_tokens = 0;
  int steps = 0, effective_steps = 0;
  Budget realised;  // nominal averages over effective steps; dense while there are none
  // Of a policy with costs, over effective steps: shares of the dense time, requested and realised.
  double requested_time = 1.0, realised_time = 1.0;
  double attended = 1.0;  // share of the keys really attended to, mean over steps
  uint64_t bytes = 0;     // of the decode steps (StepCost)
  int refreshes = 0;
  double prefill_seconds = 0, refresh_seconds = 0;
  StepTimes times;           // of the decode steps; filled by generate()
  double total_seconds = 0;  // from the first step to the end, prefill apart; filled by generate()
};

// One sequence being generated. Per token: run_dense(), next_step(), decode_step() on what it
// returned (alone or batched with other generations), complete_step(). Throws what FrozenModel and
// the policy throw; a generation is of no use then.
class Generation {
 public:
  // `model` and `policy` must outlive it. `cached`, if given, holds the first tokens of the prompt
  // already, computed densely, and not its last two: the policy looks at the state of the one, and
  // the other is the first step. Throws Error for an empty prompt, one that is longer than the
  // model's context, and bad options, such as given tokens outside the vocabulary.
  Generation(FrozenModel& model, const Policy& policy, std::vector<int32_t> prompt,
             const GenerationOptions& options, std::unique_ptr<Sequence> cached = nullptr);

  bool finished() const { return result_.finish != FinishReason::none; }
  // Ends it from outside: a stop string was met, the client has gone.
  void finish(FinishReason reason);

  // Tokens to compute densely before the next step: those of the prompt without its last, which is
  // step 1 of the first episode; after an episode its T tokens, whose keys and values are computed
  // anew (refresh).
  int dense_due() const;
  // A dense pass over the next `count` of them, 1..dense_due(), for FrozenModel::extend, which may
  // run it together with other sequences'; then complete_dense(). `wanted` is added to the pass:
  // outputs of the positions in it.
  ExtendItem next_dense(int count, std::vector<ExtendItem::Wanted> wanted = {});
  void complete_dense(double seconds);
  // The step to run next; nothing dense may be due. Valid until complete_step().
  ControlledStep next_step();
  // Takes the step's outcome and returns the token chosen from it.
  int32_t complete_step();

  // Of the last step: the logits that its token was chosen from [vocab_size], the action executed,
  // and whether the step counts.
  std::span<const float> logits() const { return logits_; }
  Action last_action() const;
  bool last_effective() const { return last_effective_; }

  // For the episodes that begin from now on.
  void set_budget(const Budget& budget, bool dense = false) {
    options_.budget = budget;
    options_.dense = dense;
  }

  // Prompt and generated tokens. The last is not cached yet.
  std::span<const int32_t> tokens() const { return tokens_; }
  // How many of them lie in the cache as a dense pass computes them. `exact`: bit for bit, without
  // those whose steps were dense.
  int dense_length(bool exact) const;
  // A sequence with so many first tokens, for a generation whose prompt begins alike.
  std::unique_ptr<Sequence> fork_dense(bool exact) const;

  // Up to now; times of decode steps stay as generate() or the caller sets them.
  GenerationResult& result() { return result_; }
  const GenerationResult& result() const { return result_; }

 private:
  EpisodeId episode_id() const;
  int middle_keys() const;  // of the episode that begins now
  Budget asked_budget() const;
  Budget next_budget() const;
  bool refresh_due() const;

  FrozenModel& model_;
  GenerationOptions options_;
  Sampler sampler_;
  std::vector<int32_t> tokens_;  // prompt and generated; all but the last are or will be cached
  uint64_t episode_index_ = 0;
  Controlled controlled_;
  std::vector<float> logits_;
  StepCost cost_;
  bool compressed_ = false;  // some step since the last refresh was not dense
  bool refreshing_ = false;  // the cache was truncated for a refresh
  bool last_effective_ = false;
  int dense_length_ = 0;
  BudgetAverage<double> average_;  // over all episodes
  TimeAverage time_, requested_time_;
  double asked_share_ = 1.0;  // of the running episode, before anything is made up for
  double sum_attended_ = 0;
  GenerationResult result_;
};

// All that is due of several generations on one model, in one pass.
void run_dense(FrozenModel& model, std::span<Generation* const> generations,
               std::stop_token stop = {});

// Runs one generation to its end. `on_token` sees every token as it is chosen (end-of-text tokens
// too) and returns false to stop, which is then the reason of the end even where that token would
// have been the last one. A stop request ends it with FinishReason::cancelled; what there is by
// then is returned.
GenerationResult generate(FrozenModel& model, const Policy& policy, std::vector<int32_t> prompt,
                          const GenerationOptions& options,
                          const std::function<bool(int32_t)>& on_token = {},
                          std::stop_token stop = {});

}  // namespace sol
