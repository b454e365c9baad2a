// The policies that need no model of their own, and the learned one.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <vector>

#include "policy/budget_guard.h"
#include "policy/network.h"
#include "sol/policy.h"

namespace sol {

// Mixes the two levels around the target on each axis so that the average is met over both
// sequences i and steps t, deterministically from (i, t) only, axes decorrelated by different
// multipliers; a single sequence uses error diffusion over t (docs/arithmetic.md, "Fixed
// baseline"). `first_sequence` is added to i: other draws, as it were, of the same mix.
std::unique_ptr<Policy> make_fixed_policy(ActionSpace space, uint64_t first_sequence = 0);

// The authors' fixed baseline: a round robin over the sequences of each batch, for comparison with
// the paper. Sequence i of an evaluation is the i-th over `batch_sizes`, whose prefixes are of one
// length; begin() throws Error for one beyond them, and for generation. Throws Error for an empty
// batch.
std::unique_ptr<Policy> make_reference_fixed_policy(ActionSpace space,
                                                    std::vector<int64_t> batch_sizes);

// How strongly a hand-made policy follows its signal, per axis; the reference's default.
inline constexpr std::array<float, 3> default_gamma{0.35f, 0.35f, 0.35f};

// EMC, entropy-matched: more compute after a step whose logits had a high entropy, steered towards
// the budget at every step (paper, appendix, "Designing static strategies"). Throws Error for a
// vocabulary of less than two tokens.
std::unique_ptr<Policy> make_entropy_policy(ActionSpace space, int vocab_size,
                                            const std::array<float, 3>& gamma = default_gamma);

// DAC, drift-aware: more compute after a step that turned the hidden state far; for the first
// decoded token, the embedding. `reference`: as the authors' code, whose drift never exceeds 1/2.
std::unique_ptr<Policy> make_drift_policy(ActionSpace space,
                                          const std::array<float, 3>& gamma = default_gamma,
                                          bool reference = false);

// One action, always ("--fixed k050-s070-q8"); its space has just that action and the dense one.
std::unique_ptr<Policy> make_constant_policy(const Action& action);

// Any action of the space, uniformly; one schedule = one draw (seed, rollout) for every sequence.
std::unique_ptr<Policy> make_random_uniform_policy(ActionSpace space, uint64_t seed);

// Per axis the two levels around the target, round(p·T) steps high, independently permuted.
std::unique_ptr<Policy> make_random_matched_policy(ActionSpace space, uint64_t seed);

// Whose schedule: as in EpisodeId.
struct ScheduleKey {
  uint64_t sequence = 0;
  uint32_t rollout = 0;
  auto operator<=>(const ScheduleKey&) const = default;
};
// Action indices of all of a sequence's steps, one episode after another.
using RecordedSchedules = std::map<ScheduleKey, std::vector<int>>;

// Plays recorded schedules, whatever the budget; begin() throws Error for one that was not recorded
// or is too short. It needs nothing itself: `needs` is what is to be observed beside it.
std::unique_ptr<Policy> make_replay_policy(ActionSpace space, RecordedSchedules schedules,
                                           Policy::Needs needs = {});

// The policy network; greedy with temperature 0 (ties to the lower index), else sampled from
// softmax(logits / temperature), each draw keyed by (seed, id.sequence, id.rollout, step counted
// over the sequence's episodes). `deterministic` uses our own products only (see
// PolicyNetwork::step). `costs`, if given, makes its budgets shares of the dense time
// (Policy::costs). `guard`, if given, closes actions after which a budget could not be met any
// more. Throws Error when the network has another number of actions than the space, for a negative
// temperature, for a space whose bits cost nothing beside costs, and for enforced budgets of time.
std::unique_ptr<Policy> make_learned_policy(ActionSpace space,
                                            std::shared_ptr<const PolicyNetwork> network,
                                            double temperature = 0.0, uint64_t seed = 0,
                                            bool deterministic = false,
                                            std::shared_ptr<const CostTable> costs = nullptr,
                                            std::shared_ptr<const BudgetGuard> guard = nullptr);

// The two neighbouring levels around a target: share `p_high` of the steps at index `high`, the
// others at `low`, averages to the target; both are the same level when the target lies on one or
// outside all. Levels are float32, the share is formed in double, as in the reference
// (golden/sol/mix.json).
struct LevelMix {
  int low, high;
  double p_high;
};
LevelMix mix_for_target(const std::vector<float>& levels, double target);

}  // namespace sol
