// The closed loop behind "ms_per_token": which shares to ask for next, so that the time of a token
// meets the target on average.
#pragma once

#include <optional>

#include "policy/cost_table.h"

namespace sol {

class LatencyTarget {
 public:
  // `costs` must outlive it. `lowest`: what the shares may not fall below.
  // `least_share`: of the dense time, for a policy that is asked for such shares (time_budget);
  // none: for one that is asked for averages per axis.
  LatencyTarget(const CostTable& costs, double target_ms, const Budget& lowest,
                std::optional<double> least_share = std::nullopt)
      : costs_(costs),
        target_ms_(target_ms),
        lowest_(lowest),
        least_share_(least_share),
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
  std::optional<double> least_share_;
  Budget lowest_now_;
  double load_ = 1.0;        // measured time by the table's
  double predicted_ms_ = 0;  // per token of the running episode, by the table
  int tokens_ = 0;           // at its beginning
  double spent_ms_ = 0;
};

}  // namespace sol
