// Episode: T decode steps after a dense prefix; owns the eight features. Nobody else computes them,
// so training, evaluation and generation cannot drift apart; averages over steps are formed by
// BudgetAverage everywhere.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "sol/action_space.h"

namespace sol {

class CostTable;

inline constexpr int feature_count = 8;
using Features = std::array<float, feature_count>;

// Averages over the steps that count, of the actions' nominal values.
template <typename Real>
class BudgetAverage {
 public:
  void add(const Action& action) {
    ++count_;
    kappa_ += action.kappa;
    rho_ += action.rho;
    eta_ += action.eta();
  }
  int count() const { return count_; }
  Budget mean_or(const Budget& without_steps) const {
    if (count_ == 0) return without_steps;
    const Real n = static_cast<Real>(count_);
    return {static_cast<float>(kappa_ / n), static_cast<float>(rho_ / n),
            static_cast<float>(eta_ / n)};
  }

 private:
  int count_ = 0;
  Real kappa_ = 0, rho_ = 0, eta_ = 0;
};

// The share of the dense time, over the steps that count: the sum of their times by that of dense
// steps in their place.
class TimeAverage {
 public:
  void add(double ms, double dense_ms) {
    ms_ += ms;
    dense_ms_ += dense_ms;
  }
  double share_or(double without_steps) const {
    return dense_ms_ > 0 ? ms_ / dense_ms_ : without_steps;
  }

 private:
  double ms_ = 0, dense_ms_ = 0;
};

// A request for a share of the dense time, for policies with Policy::costs(): one number in the
// place of the two that save time.
inline Budget time_budget(float share) {
  return {share, share, 1.0f};
}

struct EpisodeOptions {
  int horizon = 16;  // T
  int sinks = 4;     // T_s
  int window = 2;    // T_w
  // Not null: the budget is a time_budget(), and steps are counted by what they cost here.
  const CostTable* costs = nullptr;
};

class Episode {
 public:
  // `space` and `options.costs` must outlive the episode. The budget of an axis that is off is
  // replaced by its only level; a time_budget() stays as it is. Throws Error for a budget outside
  // [0, 1], an empty horizon, and a time asked of actions with less than 16 bits, which save none.
  Episode(const ActionSpace& space, const Budget& budget, const EpisodeOptions& options);

  // Whether a step with `key_count` keys in the cache (the current token included) counts: more
  // than T_s + T_w + 1 of them.
  bool effective(int key_count) const;

  // The scalars of the next step t = steps() + 1: t/T, effective flag, C_κ, C_ρ, C_η, then running
  // mean minus target for κ, ρ, η over the earlier effective steps, 0 while there are none (paper,
  // "Policy inputs"). float32, sums formed in step order. With costs (outside the paper) the
  // requested share s stands for C_κ and C_ρ, 1 for C_η, the running share of the dense time minus
  // s for the first two differences and 0 for the third.
  Features features(int key_count) const;

  // Records the next step. Returns the index of the action to execute: `chosen` on an effective
  // step, else the densest. That index is also what is fed back as the previous action.
  int record(int chosen, int key_count);

  int steps() const { return static_cast<int>(executed_.size()); }
  int effective_steps() const { return average_.count(); }
  bool finished() const { return steps() >= options_.horizon; }
  int previous_action() const {
    return executed_.empty() ? -1 : executed_.back();
  }                                                               // -1: start symbol
  const std::vector<int>& executed() const { return executed_; }  // the schedule so far
  // Averages over effective steps, of the actions' nominal values; while there are none the target,
  // or dense where that is a time.
  Budget realised() const {
    return average_.mean_or(timed() ? space_->clamp_off_axes(Budget{}) : budget_);
  }
  // Whether the budget is a time; then the share of the dense time over effective steps, the
  // requested one while there are none.
  bool timed() const { return options_.costs != nullptr; }
  float realised_time() const {
    return static_cast<float>(time_.share_or(static_cast<double>(budget_.kappa)));
  }
  const Budget& budget() const { return budget_; }
  const ActionSpace& space() const { return *space_; }
  const EpisodeOptions& options() const { return options_; }

 private:
  const ActionSpace* space_;
  Budget budget_;
  EpisodeOptions options_;
  std::vector<int> executed_;
  BudgetAverage<float> average_;  // float32 in step order, as the reference's features
  TimeAverage time_;
};

}  // namespace sol
