// The closed loop behind "ms_per_token": which shares to ask for next, so that the time of a token
// meets the target on average.
#pragma once

#include <optional>

#include "policy/cost_table.h"
#include "sol/controller.h"

namespace sol {

class LatencyTarget {
 public:
  // `costs` must outlive it. `lowest`: what the shares may not fall below.
  // `shares`: of the dense time, that a policy which is asked for such shares (time_budget) was
  // trained for; none: for one that is asked for averages per axis.
  LatencyTarget(const CostTable& costs, double target_ms, const Budget& lowest,
                std::optional<BudgetRange> shares = std::nullopt)
      : costs_(costs),
        target_ms_(target_ms),
        lowest_(lowest),
        shares_(shares),
        lowest_now_(lowest) {}

  // The budget of the next episode, at `keys` in the cache. `tokens` and `spent_ms`: so far, from
  // the second token on. `together`: sequences that are decoded at a time now; where they are too
  // many for dropped channels to save time, only the context is lowered.
  Budget next(int keys, int tokens, double spent_ms, int together = 1);
  // Whether that budget leaves the time of a dense run, which then meets the target at no loss.
  static bool is_dense(const Budget& budget) { return budget.kappa >= 1 && budget.rho >= 1; }

  // What the table says for this length at the load that the last episodes saw.
  double fastest_ms(int keys) const;
  double dense_ms(int keys) const;

 private:
  const CostTable& costs_;
  double target_ms_;
  Budget lowest_;  // while alone
  std::optional<BudgetRange> shares_;
  Budget lowest_now_;
  double load_ = 1.0;        // measured time by the table's
  double predicted_ms_ = 0;  // per token of the running episode, by the table
  int tokens_ = 0;           // at its beginning
  double spent_ms_ = 0;
};

}  // namespace sol
