#include "evaluation/named_policy.h"

#include <fmt/ranges.h>

#include "base/fail.h"
#include "policy/policies.h"

namespace sol {

const std::vector<std::string>& policy_names() {
  static const std::vector<std::string> names{"dense", "learned", "fixed", "random-matched",
                                              "random-uniform"};
  return names;
}

std::unique_ptr<Policy> make_named_policy(const std::string& name, const ActionSpace& space,
                                          const Controller* controller, uint64_t seed,
                                          bool deterministic) {
  if (name == "dense") return make_constant_policy(Action{});
  if (name == "fixed") return make_fixed_policy(space);
  if (name == "random-matched") return make_random_matched_policy(space, seed);
  if (name == "random-uniform") return make_random_uniform_policy(space, seed);
  if (name == "learned") {
    if (!controller) fail("policy 'learned' needs a controller: name its directory with -c");
    return controller->greedy_policy(deterministic);
  }
  // An action starts with k and a digit; anything else is a misspelt name.
  if (name.size() > 1 && name[0] == 'k' && name[1] >= '0' && name[1] <= '9')
    return make_constant_policy(parse_action(name));
  fail("unknown policy '{}'; known: {}, or an action such as k050-s070-q8", name,
       fmt::join(policy_names(), ", "));
}

}  // namespace sol
