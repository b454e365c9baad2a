#include "serving/dial.h"

#include <fmt/format.h>

#include "policy/action_json.h"
#include "policy/policies.h"
#include "serving/rounded.h"

namespace sol {
namespace {

// At most one way to say how much.
void require_one_way(const Dial& dial) {
  const int ways = (dial.net_keep ? 1 : 0) + (dial.keep || dial.prune || dial.bits ? 1 : 0) +
                   (dial.ms_per_token ? 1 : 0) + (dial.action ? 1 : 0);
  if (ways > 1)
    throw bad_field("sol",
                    "\"budget\", \"ms_per_token\", \"fixed\" and shares per axis exclude each "
                    "other; give one of them",
                    "conflicting_fields");
  if (dial.policy != Dial::Policy::unsaid && (ways == 0 || dial.action))
    throw bad_field("sol.policy", "needs a budget or a time that the policy is to meet",
                    "conflicting_fields");
}

Dial read_sol(const Json& json) {
  RequestFields fields(json, "sol.");
  Dial dial;
  dial.net_keep = fields.number("budget", 0.0, 1.0, true);
  dial.keep = fields.number("keep", 0.0, 1.0, true);
  dial.prune = fields.number("prune", 0.0, 1.0, true);
  dial.bits = fields.number("bits", 2.0, 16.0);
  dial.ms_per_token = fields.number("ms_per_token", 0.0, 1e6, true);
  if (const auto action = fields.text("fixed")) {
    try {
      dial.action = parse_action(*action);
    } catch (const Error& error) {
      throw bad_field("sol.fixed", error.what());
    }
  }
  if (const auto policy = fields.choice("policy", {"learned", "fixed"}))
    dial.policy = *policy == "learned" ? Dial::Policy::learned : Dial::Policy::fixed;
  dial.actions = fields.boolean("actions").value_or(false);
  dial.decode_scoring =
      fields.choice("scoring", {"prefill", "decode"}).value_or("prefill") == "decode";
  const auto from = fields.integer("scored_from", 1, 1 << 30);
  if (from && !dial.decode_scoring)
    throw bad_field("sol.scored_from", "needs \"scoring\": \"decode\"", "conflicting_fields");
  dial.scored_from = static_cast<int>(from.value_or(1));
  fields.reject_unknown();
  require_one_way(dial);
  return dial;
}

// The policy that spends a budget, or the error that says why there is none.
bool learned_policy(const Dial& dial, const ServedModel& served) {
  if (dial.policy == Dial::Policy::learned && !served.learned)
    throw bad_field("sol.policy", "this server has no controller; start it with -c DIR",
                    "no_controller");
  return served.learned && dial.policy != Dial::Policy::fixed;
}

Budget budget_of_net(double net, bool learned, const ServedModel& served) {
  const auto out_of_range = [&](const std::string& message) {
    return bad_field("sol.budget", message, "out_of_range");
  };
  if (learned) {
    try {
      return served.controller->budget_for_net_keep(net);
    } catch (const Error& error) {
      throw out_of_range(error.what());
    }
  }
  const NetRange range = *net_range(served, false);
  if (net < range.low)
    throw out_of_range(fmt::format("the fixed policy's net keep-rates are {}, not {}",
                                   shown_range(range.low, range.high), net));
  const auto share = static_cast<float>(net);
  return served.space().clamp_off_axes({share, share, share});
}

// Shares per axis: within the levels, and where an axis is off only what it has.
Budget budget_of_axes(const Dial& dial, const ServedModel& served) {
  const ActionSpace& space = served.space();
  Budget budget{static_cast<float>(dial.keep.value_or(1.0)),
                static_cast<float>(dial.prune.value_or(1.0)),
                static_cast<float>(dial.bits.value_or(16.0) / 16.0)};
  const auto check = [&](const char* field, const std::optional<double>& asked, Axis axis,
                         float value, double unit) {
    if (!asked) return;
    const std::vector<float> levels = space.levels(axis);
    if (value < levels.front() || value > levels.back())
      throw bad_field(fmt::format("sol.{}", field),
                      fmt::format("this server's levels are {}..{}, not {}",
                                  shortest_decimal(levels.front()) * unit,
                                  shortest_decimal(levels.back()) * unit, *asked),
                      "out_of_range");
  };
  check("keep", dial.keep, Axis::kappa, budget.kappa, 1);
  check("prune", dial.prune, Axis::rho, budget.rho, 1);
  check("bits", dial.bits, Axis::eta, budget.eta, 16);
  return space.clamp_off_axes(budget);
}

}  // namespace

Dial read_dial(RequestFields& request, const ServedModel& served) {
  const auto effort = request.choice("reasoning_effort", {"low", "medium", "high"});
  const Json* sol = request.find("sol");
  if (effort && sol)
    throw bad_field("reasoning_effort", "is a budget, and \"sol\" is given as well; leave out one",
                    "conflicting_fields");
  if (sol) return read_sol(*sol);
  Dial dial;
  if (effort) {
    const auto budget = served.reasoning_effort.find(*effort);
    if (budget == served.reasoning_effort.end())
      throw bad_field("reasoning_effort",
                      fmt::format("this server has no budget for \"{}\"; start it with "
                                  "--reasoning-effort {}=BUDGET",
                                  *effort, *effort),
                      "not_configured");
    dial.net_keep = budget->second;
  }
  return dial;
}

ResolvedDial resolve_dial(const Dial& dial, const ServedModel& served) {
  ResolvedDial resolved;
  if (dial.dense() || dial.action) {
    const Action action = dial.action.value_or(Action{});
    resolved.policy = make_constant_policy(action);
    resolved.budget = {action.kappa, action.rho, action.eta()};
    if (dial.action) resolved.requested["fixed"] = to_string(action);
    resolved.requested.update(budget_json(resolved.budget, served));
    return resolved;
  }
  const bool learned = learned_policy(dial, served);
  resolved.policy = learned ? served.learned : served.fixed;
  if (dial.ms_per_token) {
    if (!served.costs)
      throw bad_field("sol.ms_per_token",
                      "this server does not know what a token costs; start it with --latency on or "
                      "--costs FILE",
                      "no_cost_table");
    resolved.ms_per_token = dial.ms_per_token;
    resolved.requested = {{"ms_per_token", *dial.ms_per_token}};
    return resolved;
  }
  if (resolved.policy->costs())
    throw bad_field(dial.net_keep ? "sol.budget"
                    : dial.keep   ? "sol.keep"
                    : dial.prune  ? "sol.prune"
                                  : "sol.bits",
                    "this server's controller was trained for times: ask for \"ms_per_token\", or "
                    "for the fixed policy (\"policy\": \"fixed\")",
                    "needs_time");
  resolved.budget =
      dial.net_keep ? budget_of_net(*dial.net_keep, learned, served) : budget_of_axes(dial, served);
  if (dial.net_keep) resolved.requested["budget"] = *dial.net_keep;
  resolved.requested.update(budget_json(resolved.budget, served));
  // The triple that is asked for realises the rate on average; its own mean may be another.
  if (dial.net_keep) resolved.requested["net"] = *dial.net_keep;
  if (learned) resolved.outside = served.controller->outside_trained_ranges(resolved.budget);
  return resolved;
}

Json budget_json(const Budget& budget, const ServedModel& served) {
  return {{"keep", rounded(static_cast<double>(budget.kappa), 6)},
          {"prune", rounded(static_cast<double>(budget.rho), 6)},
          {"bits", rounded(16.0 * static_cast<double>(budget.eta), 6)},
          {"net", rounded(served.space().net_keep_rate(budget), 6)}};
}

}  // namespace sol
