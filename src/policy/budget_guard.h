// Budgets that are met by construction, which is not in the paper (docs/arithmetic.md, "Budgets
// enforced"): before each step only those actions are open after which the episode's averages can
// still meet their budget, and of those the ones near to what is left per step may be favoured.
#pragma once

#include <array>
#include <span>
#include <vector>

#include "sol/episode.h"

namespace sol {

class BudgetGuard {
 public:
  // `prior`: how much is taken off an action's logit for each level that lies between it and what
  // is left per step, summed over the axes; 0: nothing. Throws Error unless in 0..largest_prior.
  static constexpr double largest_prior = 1000;
  explicit BudgetGuard(const ActionSpace& space, double prior = 0);

  // What to add to the logits of the next step's actions: bias[a], as many as the space has; minus
  // infinity for those that are closed. `features` are that step's, those of budgets per axis;
  // `counted` steps of the episode before it count, and `left` are to come, it included (1 at
  // least). Over counted + left steps an axis' sum may miss its target by half of the widest gap
  // between neighbouring levels, so that some action is always open; where the target is out of
  // reach by more, that is the nearest level.
  void biases(const Features& features, int counted, int left, std::span<float> bias) const;

 private:
  struct AxisLevels {
    std::vector<float> levels;
    double slack = 0;
    // Per level, where `spent` is the sum so far and `total` the one to be met.
    std::vector<float> biases(double spent, double total, int left, double prior) const;
  };
  std::array<AxisLevels, 3> axes_;
  double prior_;
};

}  // namespace sol
