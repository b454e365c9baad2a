#include "evaluation/named_policy.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include "base/fail.h"
#include "policy/policies.h"

namespace sol {

namespace {

// Of the authors' evaluation, whose schedule depends on it.
constexpr int64_t reference_batch = 8;

std::vector<int64_t> reference_batches(int64_t sequences) {
  std::vector<int64_t> sizes(static_cast<size_t>(sequences / reference_batch), reference_batch);
  if (sequences % reference_batch > 0) sizes.push_back(sequences % reference_batch);
  return sizes;
}

// "fixed@1000": the fixed mix from its sequence 1000 on. Nothing for other names.
std::optional<uint64_t> shifted_fixed(const std::string& name) {
  constexpr std::string_view prefix = "fixed@";
  if (!name.starts_with(prefix)) return std::nullopt;
  uint64_t first = 0;
  const char *begin = name.data() + prefix.size(), *end = name.data() + name.size();
  const auto [stop, error] = std::from_chars(begin, end, first);
  if (error != std::errc{} || stop != end || first < 1 || first > 1000000000)
    fail("policy '{}': expected fixed@N with a whole N from 1 to 1000000000", name);
  return first;
}

}  // namespace

const std::vector<std::string>& policy_names() {
  static const std::vector<std::string> names{
      "dense",          "learned", "fixed", "fixed-reference", "random-matched",
      "random-uniform", "emc",     "dac",   "dac-reference"};
  return names;
}

bool mixes_levels(const std::string& name) {
  if (shifted_fixed(name)) return true;
  const auto& names = policy_names();
  return std::ranges::find(names, name) != names.end() && name != "dense" && name != "learned";
}

bool follows_budgets(const std::string& name) {
  return name == "learned" || (mixes_levels(name) && name != "random-uniform");
}

bool is_heuristic(const std::string& name) {
  return name == "emc" || name == "dac" || name == "dac-reference";
}

std::unique_ptr<Policy> make_named_policy(const std::string& name, const PolicyParts& parts) {
  const ActionSpace& space = parts.space;
  if (name == "dense") return make_constant_policy(Action{});
  if (name == "fixed") return make_fixed_policy(space);
  if (const auto first = shifted_fixed(name)) return make_fixed_policy(space, *first);
  if (name == "fixed-reference") {
    if (parts.sequences < 1)
      fail(
          "policy 'fixed-reference' is a schedule for an evaluation's blocks; here there are none");
    return make_reference_fixed_policy(space, reference_batches(parts.sequences));
  }
  if (name == "random-matched") return make_random_matched_policy(space, parts.seed);
  if (name == "random-uniform") return make_random_uniform_policy(space, parts.seed);
  if (name == "emc") return make_entropy_policy(space, parts.vocab_size);
  if (name == "dac") return make_drift_policy(space);
  if (name == "dac-reference") return make_drift_policy(space, default_gamma, true);
  if (name == "learned") {
    if (!parts.controller) fail("policy 'learned' needs a controller: name its directory with -c");
    return parts.controller->greedy_policy(parts.deterministic);
  }
  // An action starts with k and a digit; anything else is a misspelt name.
  if (name.size() > 1 && name[0] == 'k' && name[1] >= '0' && name[1] <= '9')
    return make_constant_policy(parse_action(name));
  fail("unknown policy '{}'; known: {}, fixed@N, or an action such as k050-s070-q8", name,
       fmt::join(policy_names(), ", "));
}

}  // namespace sol
