// Policy: anything that picks the next action. Learned, fixed, random and hand-made policies are
// the same kind of thing: an experiment is "these policies, these budgets, this data".
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "sol/action_space.h"
#include "sol/episode.h"

namespace sol {

class CostTable;

// Which episode a state is for. Policies that vary over sequences or draw at random depend on these
// numbers only, never on how sequences are batched.
struct EpisodeId {
  uint64_t sequence = 0;  // i: the sequence's (or evaluation block's) index
  uint64_t episode = 0;   // how many episodes of this sequence came before
  uint32_t rollout = 0;   // which of the K schedules, or which random draw
  bool single = false;    // a lone sequence: averages must be met over its steps alone
};

// What a policy may look at before step t. Pointers are valid during next() only.
struct Observation {
  const float* hidden = nullptr;     // h_{t-1} [d], after the final norm
  const float* embedding = nullptr;  // e(x_t) [d]
  int32_t token = -1;                // x_t
  Features features{};               // from Episode
  int previous_action = -1;          // executed index; -1 at the first step
  float previous_entropy = -1;       // of the previous step's logits, nats; < 0 when not computed
  float surprisal = -1;  // -log p(x_t) by the previous step's logits, nats; < 0 when not computed
  float drift = -1;      // (1 - cos(h_{t-1}, h_{t-2})) / 2; < 0 when not computed
  int step = 1;          // t, from 1
  int key_count = 0;     // keys in the cache, the current token included
  bool effective = true;
};

class PolicyState {
 public:
  virtual ~PolicyState() = default;
};

struct PolicyStep {
  PolicyState* state = nullptr;
  const Observation* observation = nullptr;
  int action = -1;        // out: index into the policy's action space
  float log_prob = 0.0f;  // out: log-probability of that choice; 0 for deterministic policies
};

class Policy {
 public:
  virtual ~Policy() = default;
  virtual std::string name()
      const = 0;  // as in tables and on the command line: "learned", "fixed", ...
  virtual const ActionSpace& space() const = 0;

  // What next() needs of the observation beyond features, so that nobody pays for what is not used.
  struct Needs {
    bool hidden = false, embedding = false, entropy = false, drift = false, surprisal = false;
  };
  virtual Needs needs() const { return {}; }

  // What steps cost, for a policy whose budget is a share of the dense time (time_budget); null
  // for those that meet averages per axis.
  virtual const CostTable* costs() const { return nullptr; }

  // State for one episode; states may come and go in any order. `horizon` is the episode's T.
  virtual std::unique_ptr<PolicyState> begin(const Budget& budget, int horizon,
                                             const EpisodeId& id) const = 0;

  // Chooses the next action of each step's episode, batched.
  virtual void next(std::span<PolicyStep> steps) const = 0;
};

}  // namespace sol
