// Policies by the names that tables and command lines use.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "sol/action_space.h"
#include "sol/controller.h"
#include "sol/policy.h"

namespace sol {

// The names make_named_policy knows, besides an action such as "k050-s070-q8" and "fixed@1000", the
// fixed mix from its sequence 1000 on: how much is luck shows when several of these are compared.
const std::vector<std::string>& policy_names();

// Whether the policy of that name chooses among a space's levels to meet a budget; the others are
// one action, or bring their own space.
bool mixes_levels(const std::string& name);

// Whether it does another thing at another budget: a random-uniform schedule does not.
bool follows_budgets(const std::string& name);

// Whether it is one of the paper's hand-made policies (EMC, DAC), which never exceed a budget and
// so spend less than it.
bool is_heuristic(const std::string& name);

// What policies are made of, as far as they need it.
struct PolicyParts {
  ActionSpace space{{1.0f}, {1.0f}, {16}};  // of all but "dense", "learned" and single actions
  const Controller* controller = nullptr;   // for "learned"
  uint64_t seed = 0;                        // for the random ones
  bool deterministic = false;               // as in ModelOptions
  int vocab_size = 0;                       // for "emc"
  int64_t sequences = 0;                    // for "fixed-reference": blocks of the evaluation
};

// Throws Error listing the names for an unknown one, and for a part that is missing.
std::unique_ptr<Policy> make_named_policy(const std::string& name, const PolicyParts& parts);

}  // namespace sol
