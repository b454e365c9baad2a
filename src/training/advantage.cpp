#include "training/advantage.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/fail.h"
#include "policy/axis.h"
#include "training/least_squares.h"

namespace sol {
namespace {

// Keeps a group or a batch whose values are all equal from dividing by zero.
constexpr double smallest_deviation = 1e-6;
// Of a group that is whitened alone: where its schedules are all but the same (a budget that leaves
// nothing to choose), their advantages, in nats, are rounding errors, which must not be blown up to
// the size of what other groups have to say.
constexpr double smallest_group_deviation = 1e-3;

struct Moments {
  double mean = 0, deviation = 1;
};

Moments moments(std::span<const float> values, double least = smallest_deviation) {
  double sum = 0;
  for (float v : values) sum += v;
  const double mean = values.empty() ? 0.0 : sum / static_cast<double>(values.size());
  double squares = 0;
  for (float v : values) squares += (v - mean) * (v - mean);
  const double variance = values.empty() ? 1.0 : squares / static_cast<double>(values.size());
  return {mean, std::max(std::sqrt(variance), least)};
}

float hinge_squared(float gap, float tolerance) {
  const float outside = std::max(0.0f, std::abs(gap) - tolerance);
  return outside * outside;
}

// Compares each step with the same step of the group's other schedules.
void centre_group(std::span<Schedule> group, AdvantageOptions::Norm norm) {
  std::vector<float> column(group.size());
  for (size_t t = 0; t < group[0].advantages.size(); ++t) {
    for (size_t k = 0; k < group.size(); ++k) column[k] = group[k].advantages[t];
    const Moments m = moments(column);
    const double scale = norm == AdvantageOptions::Norm::zscore ? 1.0 / m.deviation : 1.0;
    for (size_t k = 0; k < group.size(); ++k) {
      group[k].advantages[t] = static_cast<float>((column[k] - m.mean) * scale);
    }
  }
}

using Spent = Slopes;  // per axis, the sum over steps that count

// Before each of a schedule's steps.
std::vector<Spent> spent_before(const Schedule& schedule, const ActionSpace& space) {
  std::vector<Spent> out(schedule.rewards.size());
  if (schedule.actions.size() != out.size())
    fail("advantages: a schedule of {} steps has {} actions", out.size(), schedule.actions.size());
  Spent sum{};
  for (size_t t = 0; t < out.size(); ++t) {
    out[t] = sum;
    if (!schedule.effective[t]) continue;
    const Action action = space.action(schedule.actions[t]);
    sum[0] += static_cast<double>(action.kappa);
    sum[1] += static_cast<double>(action.rho);
    sum[2] += static_cast<double>(action.eta());
  }
  return out;
}

// Takes from centred advantages what the schedules spent before the step explains of them: the
// least-squares fit, over all groups of the batch, on its difference from the group's mean.
void take_spending_out(std::span<Schedule> schedules, size_t group_size, const ActionSpace& space) {
  std::vector<std::vector<Spent>> spent;
  for (const Schedule& s : schedules) spent.push_back(spent_before(s, space));
  for (size_t t = 0; t < schedules[0].advantages.size(); ++t) {
    NormalEquations fit;
    for (size_t first = 0; first < schedules.size(); first += group_size) {
      Spent mean{};
      for (size_t k = first; k < first + group_size; ++k)
        for (size_t i = 0; i < 3; ++i) mean[i] += spent[k][t][i] / static_cast<double>(group_size);
      for (size_t k = first; k < first + group_size; ++k) {
        Spent& x = spent[k][t];
        for (size_t i = 0; i < 3; ++i) x[i] -= mean[i];
        fit.add(x, static_cast<double>(schedules[k].advantages[t]));
      }
    }
    const Slopes slope = fit.solve();
    for (size_t k = 0; k < schedules.size(); ++k)
      for (size_t i = 0; i < 3; ++i)
        schedules[k].advantages[t] -= static_cast<float>(slope[i] * spent[k][t][i]);
  }
}

Moments step_moments(std::span<const Schedule> schedules, bool all_steps,
                     double least = smallest_deviation) {
  std::vector<float> values;
  for (const Schedule& s : schedules) {
    for (size_t t = 0; t < s.advantages.size(); ++t) {
      if (all_steps || s.effective[t]) values.push_back(s.advantages[t]);
    }
  }
  return moments(values, least);
}

void whiten(std::span<Schedule> schedules, const Moments& m) {
  for (Schedule& s : schedules) {
    for (float& a : s.advantages) a = static_cast<float>((a - m.mean) / m.deviation);
  }
}

// What a schedule's steps are worth less what they were charged, if they were.
std::vector<float> net_rewards(const Schedule& schedule) {
  std::vector<float> out = schedule.rewards;
  if (schedule.charges.empty()) return out;
  if (schedule.charges.size() != out.size())
    fail("advantages: a schedule of {} steps has {} charges", out.size(), schedule.charges.size());
  for (size_t t = 0; t < out.size(); ++t) out[t] -= schedule.charges[t];
  return out;
}

}  // namespace

std::vector<float> returns_to_go(std::span<const float> rewards, const AdvantageOptions& options) {
  std::vector<float> out(rewards.begin(), rewards.end());
  const bool immediate = options.returns == AdvantageOptions::Returns::none ||
                         options.gamma == 0.0 || (options.reference && options.gamma == 1.0);
  if (immediate) return out;
  const float gamma = static_cast<float>(options.gamma);
  for (size_t t = out.size(); t-- > 1;) {
    const float later = gamma * out[t];
    out[t - 1] = options.returns == AdvantageOptions::Returns::sum ? out[t - 1] + later
                                                                   : std::max(out[t - 1], later);
  }
  return out;
}

float budget_penalty(const Budget& realised, const Budget& requested,
                     const PenaltyOptions& options) {
  const float tolerance = static_cast<float>(options.tolerance);
  return static_cast<float>(options.kappa) *
             hinge_squared(realised.kappa - requested.kappa, tolerance) +
         static_cast<float>(options.rho) * hinge_squared(realised.rho - requested.rho, tolerance) +
         static_cast<float>(options.eta) * hinge_squared(realised.eta - requested.eta, tolerance);
}

float time_penalty(float realised, float requested, const PenaltyOptions& options) {
  return static_cast<float>(options.time) *
         hinge_squared(realised - requested, static_cast<float>(options.tolerance));
}

double assign_advantages(std::span<Schedule> schedules, int group_size,
                         const AdvantageOptions& options, const ActionSpace* space) {
  if (schedules.empty()) return 0.0;
  if (options.spent_baseline && !space)
    fail("advantages: spending as a baseline needs the action space");
  if (group_size < 1 || schedules.size() % static_cast<size_t>(group_size) != 0) {
    fail("advantages: {} schedules cannot be cut into groups of {}", schedules.size(), group_size);
  }
  for (Schedule& s : schedules) {
    if (s.rewards.size() != schedules[0].rewards.size() || s.effective.size() != s.rewards.size()) {
      fail("advantages: schedules of different lengths ({} and {} steps)",
           schedules[0].rewards.size(), s.rewards.size());
    }
    s.returns = returns_to_go(net_rewards(s), options);
    if (options.level == AdvantageOptions::Level::outcome) {
      std::fill(s.returns.begin(), s.returns.end(), s.returns.empty() ? 0.0f : s.returns.front());
    }
    s.penalty = s.realised_time ? time_penalty(*s.realised_time, s.budget.kappa, options.penalty)
                                : budget_penalty(s.realised, s.budget, options.penalty);
    s.advantages = s.returns;
    for (float& a : s.advantages) a -= s.penalty;
  }
  const auto for_each_group = [&](const auto& function) {
    for (size_t first = 0; first < schedules.size(); first += static_cast<size_t>(group_size))
      function(schedules.subspan(first, static_cast<size_t>(group_size)));
  };
  for_each_group([&](std::span<Schedule> group) { centre_group(group, options.norm); });
  if (options.spent_baseline) take_spending_out(schedules, static_cast<size_t>(group_size), *space);
  const Moments batch = step_moments(schedules, options.reference);
  if (options.whiten && options.whiten_over == AdvantageOptions::WhitenOver::batch) {
    whiten(schedules, batch);
  } else if (options.whiten) {
    for_each_group([&](std::span<Schedule> group) {
      whiten(group, step_moments(group, options.reference, smallest_group_deviation));
    });
  }
  return batch.deviation;
}

}  // namespace sol
