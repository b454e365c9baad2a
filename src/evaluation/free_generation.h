// Free generation under budgets: what a policy's text is like when its own tokens go on. Beyond the
// paper, whose figures are teacher-forced but for the downstream tasks.
#pragma once

#include <functional>
#include <stop_token>
#include <vector>

#include "evaluation/sweep.h"
#include "sol/policy.h"
#include "text/block_dataset.h"

namespace sol {

struct FreeGenerationOptions {
  int prompts = 64;
  int prompt_tokens = 128;  // of each block, from its beginning
  int tokens = 64;          // generated, greedily; an end-of-text token does not end them
  int horizon = 16;
  SequenceOptions sequence;
  int batch = 64;  // generations decoded together

  int block_length() const { return prompt_tokens + tokens + 1; }
};

struct FreeOutcome {
  Budget asked, realised;  // realised: mean over prompts
  double net_keep = 0;
  double perplexity = 0;        // of the generated tokens, under the dense model
  double repetition = 0;        // share of the 4-grams of a text that occurred before in it, mean
  double agreement = 0;         // share of positions with the token of dense greedy text, mean
  double first_difference = 0;  // tokens before the first one that differs from it, mean
};

// Policy and fixed at the averages that it realised, at one budget.
struct FreePair {
  FreeOutcome policy, fixed;
};

struct FreeGeneration {
  FreeOutcome dense;
  std::vector<FreePair> pairs;  // per budget
};

// The prompts are the first `prompts` blocks. Throws Error when there are fewer, and for their
// length, no budget, or what FrozenModel and the policies throw; Cancelled when `stop` was
// requested.
FreeGeneration run_free_generation(FrozenModel& model, const BlockDataset& blocks,
                                   const Policy& policy, const Policy& fixed,
                                   const std::vector<Budget>& budgets,
                                   const FreeGenerationOptions& options,
                                   const SweepProgress& progress = {}, std::stop_token stop = {});

// Share of the n-grams of `tokens` that occurred earlier in them; 0 for fewer than n tokens.
double repeated_share(const std::vector<int32_t>& tokens, int n);

}  // namespace sol
