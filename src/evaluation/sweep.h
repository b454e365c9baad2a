// A sweep: one policy and its baselines over a grid of requested budgets (docs/arithmetic.md,
// "Comparisons").
#pragma once

#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "evaluation/perplexity.h"
#include "evaluation/statistics.h"

namespace sol {

// What a baseline is asked for at a point: the averages that the policy realised there (the
// verdict: a policy that overspends must not win), or the same budget as the policy (the paper's
// table).
enum class Matching { realised, requested };
std::string_view to_string(Matching matching);

// The baseline that plays the policy's own schedules, each on a block half of the data away: the
// same averages and habits over an episode, but nothing that the policy read in the text. By as
// much as the policy is better, it read; the rest of its gain lies in the schedules' shape.
inline constexpr std::string_view elsewhere_baseline = "elsewhere";

// One policy at one budget, over all blocks.
struct Outcome {
  Budget asked;
  bool asked_time = false;  // `asked` is a time_budget()
  Budget realised;          // mean over blocks of the averages
  double net_keep = 0;      // of the realised averages
  double perplexity = 0;
  double attended = 0;           // share of keys really attended to, mean
  double time = 1;               // share of the dense time, mean; where the protocol has costs
  double seconds_per_token = 0;  // policy and refresh included; 0 unless the sweep is timed
  int64_t steps = 0, effective_steps = 0;
  std::vector<double> nll;  // [blocks], nats summed over a block's steps

  double nats_per_token() const;
};

struct SweepPoint {
  Budget requested;
  bool inside = true;  // the trained ranges
  Outcome policy;
  // Per baseline, by matching; may be empty, or end with an earlier baseline.
  std::vector<Outcome> realised, requested_budget;

  const std::vector<Outcome>& baselines(Matching matching) const {
    return matching == Matching::realised ? realised : requested_budget;
  }
};

struct SweepRequest {
  const Policy* policy = nullptr;        // what is judged
  std::vector<const Policy*> baselines;  // what it is judged against
  std::vector<Budget> budgets;           // the grid
  std::vector<bool> inside;              // per budget; empty: all are
  bool match_realised = true;
  // So many baselines, from the first on, are played at the requested budgets, too.
  size_t requested_baselines = std::numeric_limits<size_t>::max();
  // One more baseline, the last: elsewhere_baseline, at the realised averages only.
  bool elsewhere = false;
};

// Adds baselines by their names, of which elsewhere_baseline is a pass of the sweep's own and the
// others are policies that `make` makes. What it made is to outlive the sweep.
[[nodiscard]] std::vector<std::unique_ptr<Policy>> add_baselines(
    SweepRequest& request, const std::vector<std::string>& names,
    const std::function<std::unique_ptr<Policy>(const std::string& name)>& make);

struct Sweep {
  bool by_time = false;  // the policy's budgets are shares of the dense time
  std::string policy;
  std::vector<std::string> baselines;
  ActionSpace space;  // of the policy
  ProtocolOptions protocol;
  std::vector<int64_t> blocks;
  std::vector<SweepPoint> points;
  Outcome dense;
  double seconds = 0;
  int64_t decoded_tokens = 0;
};

// Work done and in all, in decoded sequences.
using SweepProgress = std::function<void(int64_t done, int64_t total)>;

// Two passes over the blocks: the policy, the dense model and baselines at the requested budgets,
// then the baselines at the averages that the policy realised. Random baselines draw one schedule
// per point (its number is the rollout). Errors as BlockEvaluator::run; also when the request names
// no policy or no budget, a baseline at the requested budgets where these are shares of the dense
// time, or `elsewhere` with a single block or without match_realised.
Sweep run_sweep(BlockEvaluator& evaluator, const SweepRequest& request,
                const SweepProgress& progress = {}, std::stop_token stop = {});

// Gathers one arm's blocks; the net keep-rate counts the axes that are on in `space`.
Outcome make_outcome(const Budget& asked, std::span<const BlockResult> blocks,
                     const ActionSpace& space);

}  // namespace sol
