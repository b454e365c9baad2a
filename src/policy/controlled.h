// A sequence decoded under a policy: the one loop that training, evaluation and generation share.
#pragma once

#include <limits>
#include <memory>
#include <span>
#include <vector>

#include "sol/episode.h"
#include "sol/frozen_model.h"
#include "sol/policy.h"

namespace sol {

// What happened at one step, for training and for records.
struct StepRecord {
  Features features{};
  int previous_action = -1;
  int action = -1;  // executed
  bool effective = true;
  float log_prob = 0.0f;         // of the chosen action
  float surprisal = -1;          // of x_t, nats; < 0 unless the policy needs it
  std::vector<float> hidden;     // h_{t-1}; filled when the policy needs it
  std::vector<float> embedding;  // e(x_t); likewise
};

// What policies may need of the position before the next step.
struct LastPosition {
  std::vector<float> hidden{};          // h_{t-1} [d]
  std::vector<float> earlier_hidden{};  // h_{t-2}, kept when the policy needs drift; empty at the
                                        // first decoded token, whose drift is its embedding's
  float entropy = -1;                   // of the logits there, nats; < 0: nobody said
  // log p(x_t) by these logits, nats, of the token that the next step takes; NaN: nobody said, or
  // the logits are no numbers.
  float log_prob = std::numeric_limits<float>::quiet_NaN();
};

// An engine sequence with its policy state and episode. Plain data: decode_step does the work.
struct Controlled {
  std::unique_ptr<Sequence> sequence;
  const Policy* policy = nullptr;
  std::unique_ptr<PolicyState> state;
  Episode episode;
  LastPosition last;            // set by whoever ran the dense prefix, then by decode_step
  int32_t previous_token = -1;  // x_{t-1}; -1: there is none, or nobody said
  // Every step of the episode is, whatever the policy would do: it is not asked.
  bool dense = false;
};

// A sequence at the beginning of its first episode: `last` is what is known of the last token that
// is in it, `previous_token`. Sinks and window are the sequence's own; the budget is a
// time_budget() where the policy has costs. Throws Error for a budget or horizon that makes no
// sense, and what the policy throws.
Controlled begin_controlled(std::unique_ptr<Sequence> sequence, const Policy& policy,
                            const Budget& budget, int horizon, const EpisodeId& id,
                            LastPosition last, int32_t previous_token = -1);

// Begins another episode where one is finished.
void begin_episode(Controlled& controlled, const Budget& budget, int horizon, const EpisodeId& id);

// What one or the other asks for: a dense prefix is shared by all the policies of a comparison.
Policy::Needs needs_of_both(const Policy::Needs& one, const Policy::Needs& other);

// What a dense pass is followed by.
struct AfterExtend {
  int32_t token;        // that the next step takes
  bool prompt = false;  // it is the first decoded one: no earlier hidden state is kept
};

// A dense pass over `tokens`, which are not empty, that leaves in `last` what `needs` says of the
// last of them; the hidden state always. It must stay where it is until FrozenModel::extend has
// run. With one token alone, `earlier_hidden` is the caller's to set.
ExtendItem observed_extend(Sequence& sequence, std::span<const int32_t> tokens,
                           const AfterExtend& after, const Policy::Needs& needs, size_t hidden_size,
                           LastPosition& last);

struct ControlledStep {
  Controlled* controlled = nullptr;
  int32_t token = -1;        // x_t
  OutputRequest out;         // `hidden` is filled in addition to the controlled sequence's own copy
  StepCost* cost = nullptr;  // may be null
  StepRecord* record = nullptr;  // may be null
};

struct StepTimes {
  double policy_seconds = 0, model_seconds = 0;
};

// One decode step of every sequence: observe, choose (batched per policy), record in the episode,
// execute, keep what the policy needs for the next step. Where it needs the surprisal, the next
// step must take `out.target`, or the caller sets last.log_prob. `times` accumulates when given.
// The caller begins a new episode and state where one is finished. Throws what the policies and
// FrozenModel::decode throw; the episodes and states of these steps are of no use then.
void decode_step(FrozenModel& model, std::span<ControlledStep> steps, StepTimes* times = nullptr);

}  // namespace sol
