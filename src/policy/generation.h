// Text generation under a policy (docs/arithmetic.md, "Generation"): one sequence's episodes,
// refreshes and sampling. The command line runs one, a server many whose steps it batches.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
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
  Budget budget;
  int horizon = 16;         // T: steps of an episode
  bool refresh = true;      // false: the policy restarts after T steps, the cache stays as it is
  int max_tokens = -1;      // -1: up to the context's end
  bool ignore_end = false;  // go on after an end-of-text token
  SamplingOptions sampling;
  uint64_t index = 0;  // which sequence: for policies and draws that vary over sequences
};

enum class FinishReason { none, end_token, stopped, max_tokens, context_end, cancelled };
std::string_view to_string(FinishReason reason);

struct GenerationResult {
  std::vector<int32_t> tokens;  // generated, an end-of-text token included
  FinishReason finish = FinishReason::none;
  int prompt_tokens = 0;
  int steps = 0, effective_steps = 0;
  Budget realised;        // nominal averages over effective steps; dense while there are none
  double attended = 1.0;  // share of the keys really attended to, mean over steps
  uint64_t bytes = 0;     // of the decode steps (StepCost)
  int refreshes = 0;
  double prefill_seconds = 0, refresh_seconds = 0;
  StepTimes times;           // of the decode steps; filled by generate()
  double total_seconds = 0;  // from the first step to the end, prefill apart; filled by generate()
};

// One sequence being generated. Per token: next_step(), decode_step() on what it returned (alone or
// batched with other generations), complete_step(). Throws what FrozenModel and the policy throw; a
// generation is of no use then.
class Generation {
 public:
  // `model` and `policy` must outlive it. Throws Error for an empty prompt, one that is longer than
  // the model's context, and bad options.
  Generation(FrozenModel& model, const Policy& policy, std::vector<int32_t> prompt,
             const GenerationOptions& options);

  // Dense pass over the prompt without its last token, which is step 1 of the first episode.
  void start(std::stop_token stop = {});

  bool finished() const { return result_.finish != FinishReason::none; }
  // Ends it from outside: a stop string was met, the client has gone.
  void finish(FinishReason reason);

  // The step to run next; refreshes the cache first when an episode is over. Valid until
  // complete_step().
  ControlledStep next_step(std::stop_token stop = {});
  // Takes the step's outcome and returns the token chosen from it.
  int32_t complete_step();

  // Up to now; times stay as generate() or the caller sets them.
  GenerationResult& result() { return result_; }

 private:
  EpisodeId episode_id() const;
  void refresh(std::stop_token stop);
  void run_dense(std::span<const int32_t> tokens, std::stop_token stop);

  FrozenModel& model_;
  GenerationOptions options_;
  Sampler sampler_;
  std::vector<int32_t> tokens_;  // prompt and generated; all but the last are or will be cached
  uint64_t episode_index_ = 0;
  Controlled controlled_;
  std::vector<float> logits_;
  StepCost cost_;
  bool compressed_ = false;        // some step since the last refresh was not dense
  BudgetAverage<double> average_;  // over all episodes
  double sum_attended_ = 0;
  GenerationResult result_;
};

// Runs one generation to its end. `on_token` sees every token as it is chosen (end-of-text tokens
// too) and returns false to stop. A stop request ends it with FinishReason::cancelled; what there
// is by then is returned.
GenerationResult generate(FrozenModel& model, const Policy& policy, std::vector<int32_t> prompt,
                          const GenerationOptions& options,
                          const std::function<bool(int32_t)>& on_token = {},
                          std::stop_token stop = {});

}  // namespace sol
