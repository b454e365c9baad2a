// Log-likelihoods of requests, densely or token by token under a policy (docs/tasks.md, "Modes").
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <stop_token>
#include <string_view>
#include <vector>

#include "evaluation/perplexity.h"
#include "evaluation/tasks/requests.h"
#include "sol/frozen_model.h"

namespace sol {

enum class ScoringMode {
  prefill,  // all scored tokens in one dense pass; no policy acts
  decode,   // one step per scored token, as in generation: here a policy acts
};
std::string_view to_string(ScoringMode mode);

// One document's requests. What their contexts have in common is computed once.
struct RequestGroup {
  uint64_t id = 0;  // the document's; policies and draws that vary over sequences vary with it
  std::vector<TokenRequest> requests;
};

// Decode steps of one request, or of a whole generation, and what they spent.
struct StepTotals {
  int64_t steps = 0, effective_steps = 0;
  Budget realised;      // nominal averages over effective steps; dense while there are none
  double attended = 0;  // share of keys really attended to, summed over steps
};

struct RequestScore {
  double log_likelihood = 0;  // of the scored tokens, nats
  StepTotals spent;           // none in prefill mode
};

// Averages over all effective steps of several totals, each step counting once.
StepTotals sum_of(std::span<const StepTotals> totals);

struct ScoringOptions {
  SequenceOptions sequence;  // page size, sinks, window
  int horizon = 16;  // T: steps of an episode, after which its tokens are recomputed densely
  int batch = 64;    // sequences decoded together; results do not depend on it
};

using ScoringProgress = std::function<void(int64_t done, int64_t total)>;

class Scorer {
 public:
  // `model` must outlive it. Throws Error for options that are not positive.
  Scorer(FrozenModel& model, const ScoringOptions& options);

  // How many groups from `first` on are worked on together: the keys and values of all groups of
  // one call below are in memory at a time, so a whole task is cut here.
  static size_t together(std::span<const RequestGroup> groups, size_t first);

  // result[group][request]. Throws Error for a log-probability that is not finite, naming the
  // document, and Cancelled when `stop` was requested.
  std::vector<std::vector<RequestScore>> prefill(std::span<const RequestGroup> groups,
                                                 std::stop_token stop = {});

  // result[arm][group][request]: as Generation computes a continuation, with the tokens given. A
  // dense pass over the context without its last token, which is step 1 of the first episode;
  // after T steps the last T tokens are computed again densely, and a new episode begins. All
  // requests of a document meet the same schedule of a policy that does not look at the text; a
  // random policy draws anew for every document. Errors as above and for budgets outside [0, 1].
  std::vector<std::vector<std::vector<RequestScore>>> decode(std::span<const RequestGroup> groups,
                                                             std::span<const Arm> arms,
                                                             const ScoringProgress& progress = {},
                                                             std::stop_token stop = {});

 private:
  struct Dense;
  struct Running;
  std::vector<Dense> shared_prefixes(std::span<const RequestGroup> groups,
                                     const Policy::Needs& needs, std::stop_token stop);
  std::vector<Dense> contexts(std::span<const RequestGroup> groups, const Policy::Needs& needs,
                              std::stop_token stop);
  std::vector<Running> begin(std::span<const RequestGroup> groups, std::span<const Arm> arms,
                             std::stop_token stop);
  void refresh(std::span<Running> running, std::stop_token stop);
  void step(std::span<Running> running);

  FrozenModel& model_;
  ScoringOptions options_;
  size_t hidden_size_;
};

}  // namespace sol
