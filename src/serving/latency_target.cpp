#include "serving/latency_target.h"

#include <algorithm>

#include "sol/episode.h"
#include "sol/frozen_model.h"

namespace sol {

Budget LatencyTarget::next(int keys, int tokens, double spent_ms, int together) {
  lowest_now_ = lowest_;
  if (together > most_skipping_sequences) lowest_now_.rho = 1.0f;
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
  Budget budget;
  if (shares_) {
    const double share =
        costs_.share_for(wanted / load_, middle, lowest_now_, shares_->low, shares_->high);
    budget = time_budget(static_cast<float>(share));
    predicted_ms_ = costs_.share_ms(share, middle);
  } else {
    budget = costs_.budget_for(wanted / load_, middle, lowest_now_);
    predicted_ms_ = costs_.token_ms(budget.kappa, budget.rho, middle);
  }
  tokens_ = tokens;
  spent_ms_ = spent_ms;
  return budget;
}

double LatencyTarget::fastest_ms(int keys) const {
  return load_ * costs_.fastest_ms(keys, lowest_now_);
}

double LatencyTarget::dense_ms(int keys) const {
  return load_ * costs_.dense_ms(keys);
}

}  // namespace sol
