// What a training configuration may hold.
#include <limits>

#include "base/fail.h"
#include "model/utf8.h"
#include "policy/budget_guard.h"
#include "policy/cost_table.h"
#include "training/config.h"
#include "training/field_error.h"

namespace sol {
namespace {

void check(bool ok, const std::string& field, double value, const char* rule) {
  if (!ok) throw FieldError(field, fmt::format("{} is {}; it must be {}", field, value, rule));
}

// `levels` of an axis, ascending: what averages can be. Empty for a time.
void check_budget(const BudgetSource& source, std::string field, const std::vector<float>& levels) {
  const auto inside = [](double x) { return x > 0.0 && x <= 1.0; };
  if (!source.list.empty()) field += "_list";
  check(inside(source.range.low), field, source.range.low, "in (0, 1]");
  check(inside(source.range.high), field, source.range.high, "in (0, 1]");
  check(source.range.low <= source.range.high, field, source.range.low, "a range from low to high");
  constexpr double rounding = 1e-6;
  if (!levels.empty() && (source.range.low < static_cast<double>(levels.front()) - rounding ||
                          source.range.high > static_cast<double>(levels.back()) + rounding))
    throw FieldError(field, fmt::format("{} goes from {} to {}; no average lies outside the axis' "
                                        "levels, from {} to {}",
                                        field, source.range.low, source.range.high, levels.front(),
                                        levels.back()));
}

void check_curriculum(const TrainingConfig& config) {
  const CurriculumOptions& curriculum = config.curriculum;
  check(curriculum.share >= 0 && curriculum.share <= 1, "curriculum.share", curriculum.share,
        "from 0 to 1");
  check(curriculum.width > 0 && curriculum.width <= 1, "curriculum.width", curriculum.width,
        "more than 0 and at most 1");
  if (curriculum.share <= 0) return;
  for (const BudgetSource* source :
       {&config.kappa, &config.rho, &config.eta, config.time ? &*config.time : &config.kappa})
    if (!source->list.empty())
      throw FieldError("curriculum.share",
                       "curriculum.share: a curriculum widens ranges of budgets, but budgets are "
                       "given as a list; give [lowest, highest]");
}

// Three slopes are fitted to a loader batch's advantages at each step.
void check_spent_baseline(const TrainingConfig& config) {
  constexpr const char* field = "reward.spent_baseline";
  if (config.time)
    throw FieldError(field,
                     "reward.spent_baseline: what is spent are averages per axis, but the "
                     "budget is a time");
  if (config.advantage.norm == AdvantageOptions::Norm::zscore)
    throw FieldError(field,
                     "reward.spent_baseline: with reward.norm zscore advantages of different "
                     "inputs have different units; use center");
  constexpr int fewest = 12;
  if (config.batch * (config.schedules - 1) < fewest)
    throw FieldError(
        field, fmt::format("reward.spent_baseline: rollout.batch times (rollout.schedules - 1) "
                           "is {}; of fewer than {} the fit would take the signal away",
                           config.batch * (config.schedules - 1), fewest));
}

void check_text(const char* field, const std::string& text) {
  if (!is_valid_utf8(text)) throw FieldError(field, fmt::format("{} is not UTF-8", field));
}

void check_policy(const PolicyNetworkShape& policy, int horizon) {
  constexpr int widest = 1 << 14, deepest = 256;
  check(policy.d_model >= 1 && policy.d_model <= widest, "policy.d_model", policy.d_model,
        "from 1 to 16384");
  check(policy.heads >= 1 && policy.d_model % policy.heads == 0, "policy.heads", policy.heads,
        "a divisor of policy.d_model");
  check(policy.layers >= 1 && policy.layers <= deepest, "policy.layers", policy.layers,
        "from 1 to 256");
  const double width = policy.mlp_ratio * policy.d_model;
  check(width >= 1 && width <= 4 * widest, "policy.mlp_ratio", policy.mlp_ratio,
        "such that policy.d_model times it is from 1 to 65536");
  check(policy.action_dim >= 1 && policy.action_dim <= widest, "policy.action_dim",
        policy.action_dim, "from 1 to 16384");
  check(policy.max_length >= horizon && policy.max_length <= 1 << 20, "policy.max_length",
        policy.max_length, "at least rollout.horizon and at most 1048576");
  // The projections' parameters; each is kept four times (itself, its gradient, two moments).
  const double d = policy.d_model, parameters = policy.layers * (4 * d * d + 2 * d * width);
  constexpr double most = 1 << 28;  // 4 GiB
  check(parameters + d * policy.max_length <= most, "policy.d_model", policy.d_model,
        "smaller: with policy.layers, policy.mlp_ratio and policy.max_length it makes more than "
        "2^28 parameters");
}

}  // namespace

bool TrainingConfig::is_valid() const {
  try {
    validate();
    return true;
  } catch (const Error&) {
    return false;
  }
}

void TrainingConfig::validate() const {
  // Upper bounds lie far beyond anything useful, so that no sum or product of settings overflows.
  constexpr double many = 1 << 24, number = 1e6;
  const auto within = [](const char* field, double value, double low, double high) {
    if (value >= low && value <= high) return;
    throw FieldError(field,
                     fmt::format("{} is {}; it must be from {} to {}", field, value, low, high));
  };
  const auto positive = [](const char* field, double value, double high) {
    if (value > 0 && value <= high) return;
    throw FieldError(
        field, fmt::format("{} is {}; it must be more than 0 and at most {}", field, value, high));
  };
  check_text("name", name);
  check_text("model", model);
  check_text("data.text_field", text.text_field);
  check_budget(kappa, "budgets.keep", space.levels(Axis::kappa));
  check_budget(rho, "budgets.prune", space.levels(Axis::rho));
  check_budget(eta, "budgets.quant", space.levels(Axis::eta));
  within("budgets.prior", prior, 0, BudgetGuard::largest_prior);
  if (prior > 0 && !enforced)
    throw FieldError(
        "budgets.prior",
        "budgets.prior: it is of enforced budgets; set budgets.enforced, or leave it out");
  if (time) {
    check_budget(*time, "budgets.time", {});
    if (enforced)
      throw FieldError("budgets.enforced",
                       "budgets.enforced: a budget of time cannot be enforced; give budgets of "
                       "averages, or leave it out");
    try {
      require_times_fit(space);
    } catch (const Error& error) {
      throw FieldError("actions.quant", fmt::format("actions.quant: {}", error.what()));
    }
  }
  check_curriculum(*this);
  within("penalty.keep", advantage.penalty.kappa, 0, number);
  within("penalty.prune", advantage.penalty.rho, 0, number);
  within("penalty.quant", advantage.penalty.eta, 0, number);
  within("penalty.time", advantage.penalty.time, 0, number);
  within("penalty.tolerance", advantage.penalty.tolerance, 0, number);
  within("quest.page_size", sequence.page_size, 1, 4096);
  within("quest.sinks", sequence.sinks, 0, many);
  within("quest.window", sequence.window, 0, many);
  within("rollout.context", context, 1, many);
  within("rollout.horizon", horizon, 1, many);
  if (context + horizon <= sequence.sinks + sequence.window + 1)
    throw FieldError("quest.window",
                     fmt::format("quest.window: of rollout.context {} + rollout.horizon {} tokens "
                                 "all lie among the quest.sinks {} or in the quest.window {}, so "
                                 "that every step is dense and nothing can be learned",
                                 context, horizon, sequence.sinks, sequence.window));
  check(schedules >= 2, "rollout.schedules", schedules,
        "at least 2: schedules are compared with each other");
  within("rollout.batch", batch, 1, 1 << 16);
  check(static_cast<double>(batch) * schedules <= 1 << 16, "rollout.schedules", schedules,
        "so many that rollout.batch times it, the sequences decoded together, are at most 65536");
  // Logits divided by less are beyond what single precision trains on.
  within("rollout.temperature", loss.temperature, 1e-3, number);
  check_policy(policy, horizon);
  within("reward.gamma", advantage.gamma, 0, 1);
  if (!advantage.whiten && advantage.whiten_over == AdvantageOptions::WhitenOver::group)
    throw FieldError(
        "reward.whiten_over",
        "reward.whiten_over is group, but reward.whiten is false: nothing is whitened; "
        "remove one of them");
  if (advantage.spent_baseline) check_spent_baseline(*this);
  within("reward.task_kl", task_kl, 0, number);
  within("reward.price_rate", price_rate, 0, number);
  if (price_rate > 0 && !enforced)
    throw FieldError(
        "reward.price_rate",
        "reward.price_rate: prices move until what is spent is what is left of a budget "
        "that will be met; set budgets.enforced, or leave it out");
  within("optimisation.updates", updates, 1, std::numeric_limits<int>::max());
  positive("optimisation.learning_rate", optimiser.learning_rate, number);
  if (optimiser.final_learning_rate)
    within("optimisation.final_learning_rate", *optimiser.final_learning_rate, 0, number);
  within("optimisation.weight_decay", optimiser.weight_decay, 0, number);
  // So much never clips; only what a float holds could be asked for.
  positive("optimisation.max_grad_norm", optimiser.max_gradient_norm, 1e30);
  within("optimisation.grad_accum", grad_accum, 1, many);
  check(loss.clip > 0 && loss.clip < 1, "optimisation.clip", loss.clip, "in (0, 1)");
  within("optimisation.entropy", loss.entropy, 0, number);
  if (final_entropy) within("optimisation.final_entropy", *final_entropy, 0, number);
  within("distil.weight", loss.distil, 0, number);
  check(distil_tolerance > 0 && distil_tolerance <= 1, "distil.tolerance", distil_tolerance,
        "more than 0 and at most 1");
  within("optimisation.minibatch", minibatch, 1, many);
  within("optimisation.target_steps", target_steps, 1, many);
  within("checkpoint.updates", checkpoint_updates, 1, std::numeric_limits<int>::max());
  positive("checkpoint.minutes", checkpoint_minutes, 1e9);
  check(space.size() >= 2, "actions", space.size(),
        "at least two actions: there is nothing to choose");
}

}  // namespace sol
