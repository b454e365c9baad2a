// Episode: T decode steps after a dense prefix; owns the eight features. Nobody else computes them,
// so training, evaluation and generation cannot drift apart; averages over steps are formed by
// BudgetAverage everywhere.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "sol/action_space.h"

namespace sol {

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

struct EpisodeOptions {
  int horizon = 16;  // T
  int sinks = 4;     // T_s
  int window = 2;    // T_w
};

class Episode {
 public:
  // `space` must outlive the episode. The budget of an axis that is off is replaced by its only
  // level.
  Episode(const ActionSpace& space, const Budget& budget, const EpisodeOptions& options);

  // Whether a step with `key_count` keys in the cache (the current token included) counts: more
  // than T_s + T_w + 1 of them.
  bool effective(int key_count) const;

  // The scalars of the next step t = steps() + 1: t/T, effective flag, C_κ, C_ρ, C_η, then running
  // mean minus target for κ, ρ, η over the earlier effective steps, 0 while there are none (paper,
  // "Policy inputs"). float32, sums formed in step order.
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
  // Averages over effective steps; the target while there are none.
  Budget realised() const { return average_.mean_or(budget_); }
  const Budget& budget() const { return budget_; }
  const ActionSpace& space() const { return *space_; }
  const EpisodeOptions& options() const { return options_; }

 private:
  const ActionSpace* space_;
  Budget budget_;
  EpisodeOptions options_;
  std::vector<int> executed_;
  BudgetAverage<float> average_;  // float32 in step order, as the reference's features
};

}  // namespace sol
