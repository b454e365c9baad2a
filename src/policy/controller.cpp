#include "sol/controller.h"

#include <cmath>

#include "base/fail.h"
#include "base/json.h"
#include "base/shown_text.h"
#include "policy/axis.h"
#include "policy/budget_guard.h"
#include "policy/cost_table.h"
#include "policy/network.h"
#include "policy/policies.h"

namespace sol {
namespace {

void check_range(const BudgetRange& range, std::string_view of) {
  if (!(range.low >= 0.0 && range.low <= range.high && range.high <= 1.0))
    fail("controller: budget range of {} is {}..{}; it must ascend within [0, 1]", of, range.low,
         range.high);
}

void check_frontier(const std::vector<FrontierPoint>& frontier) {
  for (size_t i = 0; i < frontier.size(); ++i) {
    const FrontierPoint& point = frontier[i];
    if (!(point.net_keep >= 0.0 && point.net_keep <= 1.0))
      fail("controller: frontier point {}: net_keep = {} must lie in [0, 1]", i, point.net_keep);
    if (i > 0 && !(point.net_keep > frontier[i - 1].net_keep))
      fail("controller: frontier point {}: net_keep must ascend, but {} follows {}", i,
           point.net_keep, frontier[i - 1].net_keep);
    for (const Axis axis : all_axes)
      if (const float target = value(point.budget, axis); !(target >= 0.0f && target <= 1.0f))
        fail("controller: frontier point {}: {} = {} must lie in [0, 1]", i, name(axis), target);
    if (!std::isfinite(point.perplexity) || point.perplexity < 0.0)
      fail("controller: frontier point {}: perplexity = {}", i, point.perplexity);
  }
}

// At least `low`, and small enough that no sum of settings overflows.
void check_count(int count, int low, const char* field) {
  constexpr int high = 1 << 24;
  if (count < low || count > high)
    fail("controller: {} = {} must be from {} to {}", field, count, low, high);
}

// What its model ran with outside the paper while it was trained, as far as the record, which may
// be anything, says so.
std::vector<std::string> options_of_training(const std::string& training_json) {
  const Json training = parse_json(training_json, "the controller's training record");
  std::vector<std::string> options;
  if (!training.is_object() || !training.contains("run")) return options;
  const Json& run = training.at("run");
  if (!run.is_object() || !run.contains("outside_paper")) return options;
  for (const Json& option : run.at("outside_paper"))
    if (option.is_string()) options.push_back(option.get<std::string>());
  return options;
}

}  // namespace

Controller::Controller(ActionSpace space, ControllerSettings settings,
                       std::shared_ptr<const PolicyNetwork> network)
    : space_(std::move(space)), settings_(std::move(settings)), network_(std::move(network)) {
  check_count(settings_.horizon, 1, "horizon");
  check_count(settings_.sequence.page_size, 1, "page_size");
  check_count(settings_.sequence.sinks, 0, "sinks");
  check_count(settings_.sequence.window, 0, "window");
  for (const Axis axis : all_axes) check_range(settings_.ranges[axis], name(axis));
  if (settings_.costs) {
    check_range(settings_.time, "the time");
    require_times_fit(space_);
    if (settings_.enforced) fail("controller: a budget of time cannot be enforced");
    if (settings_.costs->horizon() != settings_.horizon)
      fail("controller: its costs are for episodes of {} steps, its horizon is {}",
           settings_.costs->horizon(), settings_.horizon);
    if (!settings_.frontier.empty())
      fail("controller: one for times has no frontier of net keep-rates");
  }
  if (settings_.enforced)
    guard_ = std::make_shared<const BudgetGuard>(space_, settings_.budget_prior);
  else if (settings_.budget_prior != 0)
    fail("controller: a prior of {} without enforced budgets", settings_.budget_prior);
  check_frontier(settings_.frontier);
  parse_json(settings_.training_json, "the controller's training record");
  const PolicyNetworkShape& shape = network_->shape();
  if (shape.actions != space_.size())
    fail("controller: the network chooses among {} actions, the action space has {}", shape.actions,
         space_.size());
  if (shape.max_length < settings_.horizon)
    fail("controller: the network has {} positions, the horizon is {} steps", shape.max_length,
         settings_.horizon);
}

void Controller::require_model(const std::string& fingerprint,
                               const std::string& model_name) const {
  if (fingerprint == settings_.model_fingerprint) return;
  fail(
      "this controller was trained for the model with fingerprint {}, but {} has fingerprint {}; "
      "use that model, or train a controller for this one (sol train)",
      settings_.model_fingerprint, model_name, fingerprint);
}

std::string Controller::unlike_training(const std::vector<std::string>& outside_paper) const {
  const std::vector<std::string> trained = options_of_training(settings_.training_json);
  if (trained == outside_paper) return "";
  const auto named = [](const std::vector<std::string>& options) {
    return options.empty() ? "no option outside the paper"
                           : fmt::format("--{}", fmt::join(options, " --"));
  };
  return fmt::format("this controller was trained with {}, and is used with {}", named(trained),
                     named(outside_paper));
}

Budget Controller::budget_for_net_keep(double net_keep) const {
  const std::vector<FrontierPoint>& frontier = settings_.frontier;
  if (settings_.costs)
    fail("this controller was trained for times: it takes a time per token, not a net keep-rate");
  if (frontier.empty())
    fail(
        "this controller has no validation frontier, so one net keep-rate cannot be turned into "
        "budgets; `sol sweep -c CONTROLLER --data VALIDATION_TEXT --store-frontier -o REPORT` "
        "measures "
        "one");
  if (!(net_keep >= frontier.front().net_keep && net_keep <= frontier.back().net_keep))
    fail("net keep-rate {} is outside this controller's validation frontier, {}", net_keep,
         shown_range(frontier.front().net_keep, frontier.back().net_keep));
  size_t above = 0;
  while (frontier[above].net_keep < net_keep) ++above;
  const FrontierPoint& high = frontier[above];
  if (high.net_keep == net_keep) return high.budget;
  const FrontierPoint& low = frontier[above - 1];
  const double share = (net_keep - low.net_keep) / (high.net_keep - low.net_keep);
  Budget budget;
  for (const Axis axis : all_axes) {
    const double from = value(low.budget, axis), to = value(high.budget, axis);
    value(budget, axis) = static_cast<float>(from + share * (to - from));
  }
  return budget;
}

std::string Controller::outside_trained_ranges(const Budget& budget) const {
  if (settings_.costs) {
    const BudgetRange& trained = settings_.time;
    if (trained.contains(budget.kappa)) return {};
    return fmt::format("{} of the dense time is outside the trained range {}..{}", budget.kappa,
                       trained.low, trained.high);
  }
  std::string sentence;
  for (const Axis axis : all_axes) {
    if (!space_.on(axis)) continue;
    const BudgetRange& trained = settings_.ranges[axis];
    if (trained.contains(value(budget, axis))) continue;
    if (!sentence.empty()) sentence += "; ";
    sentence += fmt::format("the budget {} = {} is outside the trained range {}..{}", name(axis),
                            value(budget, axis), trained.low, trained.high);
  }
  return sentence;
}

void Controller::set_frontier(std::vector<FrontierPoint> frontier) {
  check_frontier(frontier);
  if (settings_.costs && !frontier.empty())
    fail("a controller for times has no frontier of net keep-rates");
  settings_.frontier = std::move(frontier);
}

std::unique_ptr<Policy> Controller::greedy_policy(bool deterministic) const {
  return make_learned_policy(space_, network_, 0.0, 0, deterministic, settings_.costs, guard_);
}

Budget Controller::budget_for_ms(double ms, int keys) const {
  const Budget lowest{space_.kappa().front(), space_.rho().front(), 1.0f};
  return time_budget(static_cast<float>(
      settings_.costs->share_for(ms, keys, lowest, settings_.time.low, settings_.time.high)));
}

}  // namespace sol
