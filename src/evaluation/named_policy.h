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

// The names make_named_policy knows, besides an action such as "k050-s070-q8".
const std::vector<std::string>& policy_names();

// `controller` may be null; "learned" needs it. The others act in `space`. Throws Error listing the
// names for an unknown one. `deterministic` as in ModelOptions.
std::unique_ptr<Policy> make_named_policy(const std::string& name, const ActionSpace& space,
                                          const Controller* controller, uint64_t seed,
                                          bool deterministic = false);

}  // namespace sol
