// Budgets that are met by construction, which is not in the paper (docs/arithmetic.md, "Budgets
// enforced"): before each step only those actions are open after which the episode's averages can
// still meet their budget.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "sol/episode.h"

namespace sol {

class BudgetGuard {
 public:
  explicit BudgetGuard(const ActionSpace& space);

  // Whether each action may be the next step's: open[a], as many as the space has. `features` are
  // that step's, those of budgets per axis; `counted` steps of the episode before it count, and
  // `left` are to come, it included (1 at least). Over counted + left steps an axis' sum may miss
  // its target by half of the widest gap between neighbouring levels, so that some action is always
  // open; where the target is out of reach by more, that is the nearest level.
  void open_actions(const Features& features, int counted, int left, std::span<uint8_t> open) const;

 private:
  struct AxisLevels {
    std::vector<float> levels;
    double slack = 0;
    // Which may be next where `spent` is the sum so far and `total` the one to be met.
    std::vector<uint8_t> open(double spent, double total, int left) const;
  };
  std::array<AxisLevels, 3> axes_;
};

}  // namespace sol
