#include "serving/latency_target.h"

#include <algorithm>

namespace sol {

Budget LatencyTarget::next(int keys, int tokens, double spent_ms) {
  if (tokens > tokens_ && predicted_ms_ > 0) {
    // Half of what the last episode says: other requests come and go, and one slow token is no
    // trend.
    const double measured = (spent_ms - spent_ms_) / (tokens - tokens_);
    load_ = std::clamp(0.5 * (load_ + measured / predicted_ms_), 0.1, 100.0);
  }
  // What has been spent too much is saved over the next two episodes.
  const double ahead = 2.0 * costs_.horizon();
  const double wanted = std::clamp((target_ms_ * (tokens + ahead) - spent_ms) / ahead,
                                   0.5 * target_ms_, 1.5 * target_ms_);
  const int middle = keys + costs_.horizon() / 2;
  const Budget budget = costs_.budget_for(wanted / load_, middle, lowest_);
  predicted_ms_ = costs_.token_ms(budget.kappa, budget.rho, middle);
  tokens_ = tokens;
  spent_ms_ = spent_ms;
  return budget;
}

double LatencyTarget::fastest_ms(int keys) const {
  return load_ * std::min(costs_.token_ms(lowest_.kappa, lowest_.rho, keys),
                          costs_.token_ms(1.0f, 1.0f, keys));
}

double LatencyTarget::dense_ms(int keys) const {
  return load_ * costs_.token_ms(1.0f, 1.0f, keys);
}

}  // namespace sol
