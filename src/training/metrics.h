// What training reports: a line of OUT/train.jsonl per collection.
#pragma once

#include <array>
#include <cstdint>

#include "base/json.h"

namespace sol {

struct CollectionMetrics {
  int64_t collection = 0;     // how many came before, this one included
  int64_t update = 0;         // AdamW steps so far
  int64_t updates = 0;        // of the whole run
  int64_t position = 0;       // inputs read so far
  int64_t epoch = 0;          // of the last input, from 0
  int64_t steps = 0;          // decode steps collected
  double reward = 0;          // mean per step
  double log_likelihood = 0;  // mean log p(y_t), nats
  double perplexity = 0;
  std::array<double, 3> requested{}, realised{};  // means over schedules: κ, ρ, η
  std::array<double, 3> gap{};                    // mean |realised - requested|
  double penalty = 0;
  double advantage_deviation = 0;                   // before whitening
  double loss = 0, entropy = 0, clip_fraction = 0;  // means over the collection's minibatches
  double gradient_norm = 0;                         // before clipping, of the last AdamW step
  double network_disagreement = 0;  // largest |inference - training| log-probability
  double seconds_prefill = 0, seconds_rollout = 0, seconds_policy = 0, seconds_update = 0;
  double seconds = 0;  // of this collection
  double prefill_tokens_per_second = 0, decode_tokens_per_second = 0;
  double seconds_left = 0;  // estimated
};

inline Json to_json(const CollectionMetrics& m) {
  return {{"collection", m.collection},
          {"update", m.update},
          {"updates", m.updates},
          {"position", m.position},
          {"epoch", m.epoch},
          {"steps", m.steps},
          {"reward", m.reward},
          {"log_likelihood", m.log_likelihood},
          {"perplexity", m.perplexity},
          {"requested", m.requested},
          {"realised", m.realised},
          {"gap", m.gap},
          {"penalty", m.penalty},
          {"advantage_deviation", m.advantage_deviation},
          {"loss", m.loss},
          {"entropy", m.entropy},
          {"clip_fraction", m.clip_fraction},
          {"gradient_norm", m.gradient_norm},
          {"network_disagreement", m.network_disagreement},
          {"seconds_prefill", m.seconds_prefill},
          {"seconds_rollout", m.seconds_rollout},
          {"seconds_policy", m.seconds_policy},
          {"seconds_update", m.seconds_update},
          {"seconds", m.seconds},
          {"prefill_tokens_per_second", m.prefill_tokens_per_second},
          {"decode_tokens_per_second", m.decode_tokens_per_second},
          {"seconds_left", m.seconds_left}};
}

}  // namespace sol
