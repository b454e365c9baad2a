// One sampled schedule of an input and everything that the update needs to know about it.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sol/episode.h"

namespace sol {

struct Schedule {
  // Observed and done at each of the T steps.
  std::vector<float> hidden;           // h_{t-1}, [T][d]
  std::vector<float> embedding;        // e(x_t), [T][d]
  std::vector<Features> features;      // [T]
  std::vector<float> surprisal;        // of x_t, nats, [T]; empty unless the policy is shown it
  std::vector<int> previous_actions;   // [T]; -1 is the start symbol
  std::vector<int> actions;            // [T], as executed
  std::vector<uint8_t> effective;      // [T]
  std::vector<float> rewards;          // r_t, [T]
  std::vector<float> log_likelihood;   // log p(y_t), nats, [T]
  Budget budget;                       // requested; a time_budget() where there is a realised time
  Budget realised;                     // averages over effective steps
  std::optional<float> realised_time;  // of the dense time, over effective steps

  // Of the chosen actions at the rollout's temperature, by the inference network that chose them
  // and by the training network before the update; 0 on steps that are not effective.
  std::vector<float> inference_log_probs, old_log_probs;

  // What the steps' spending is charged at, in the reward's unit, [T]; empty without prices
  // (training/spending_price.h).
  std::vector<float> charges;

  // Filled by assign_advantages.
  std::vector<float> returns;  // G_t
  float penalty = 0;           // C
  std::vector<float> advantages;

  // Weight of its steps' log-likelihood in the distillation term (training/distillation.h).
  float imitation = 0;

  int steps() const { return static_cast<int>(actions.size()); }
};

}  // namespace sol
