// What training reports: a line of OUT/train.jsonl per collection.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "training/price_table.h"

namespace sol {

// How often a level of an axis was chosen.
struct LevelCount {
  double level = 0;  // κ, ρ or bits
  int64_t count = 0;
  bool operator==(const LevelCount&) const = default;
};
inline constexpr std::array<const char*, 3> action_axis_names{"kappa", "rho", "bits"};

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
  // Of a budget that is a time, means over schedules of shares of the dense time and of their
  // difference's magnitude; `requested` and `gap` are 0 then. Not written where there is none.
  std::optional<double> requested_time, realised_time, time_gap;
  double budget_range_share = 1;  // of the last input (training/curriculum.h)
  double penalty = 0;
  double advantage_deviation = 0;                   // before whitening, mean over loader batches
  double loss = 0, entropy = 0, clip_fraction = 0;  // means over the collection's minibatches
  double entropy_weight = 0;                        // in the loss of the last minibatch
  // Of distillation: share of the inputs that have a schedule worth it, and its mean loss.
  double distil_share = 0, distil_loss = 0;
  double gradient_norm = 0;         // before clipping, of the last AdamW step
  double learning_rate = 0;         // of the next AdamW step
  double network_disagreement = 0;  // largest |inference - training| log-probability
  double seconds_prefill = 0, seconds_rollout = 0, seconds_policy = 0, seconds_update = 0;
  double seconds = 0;  // of this collection
  double prefill_tokens_per_second = 0, decode_tokens_per_second = 0;
  double seconds_left = 0;  // estimated
  // After this collection: what a resumed run goes on with. Not written where there are none.
  std::optional<PriceTable> prices;
  // Of every step, by axis, levels ascending. Empty in a log of an earlier version.
  std::array<std::vector<LevelCount>, 3> actions;
};

Json to_json(const CollectionMetrics& metrics);
// Inverse of the above; `learning_rate` and `actions` may be missing, as in logs of earlier
// versions. Throws Error naming `where` and the field that is missing, of another type, or negative
// where nothing can be: counters, the perplexity, times that were measured.
CollectionMetrics metrics_from_json(const Json& json, const std::string& where);

}  // namespace sol
