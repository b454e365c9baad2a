// What a training run left in its directory, for tables and curves.
#pragma once

#include <array>
#include <filesystem>
#include <string>
#include <vector>

#include "base/json.h"

namespace sol {

struct TrainingPoint {
  double update = 0, seconds = 0;                                     // since the beginning
  double reward = 0, perplexity = 0, entropy = 0, clip_fraction = 0;  // NaN where none is finite
  std::array<double, 3> gap{};
};

struct TrainingSummary {
  double updates = 0, seconds = 0, steps = 0;
  int64_t policy_parameters = 0;
  std::vector<TrainingPoint> curve;  // at most 200, each the mean of those it stands for; not empty
};

// From DIR/train.jsonl (docs/formats.md) and the controller beside it. Throws Error for one that is
// missing or malformed.
TrainingSummary training_summary(const std::filesystem::path& dir);

// How long the run in DIR has trained so far, over all its calls; likewise.
double training_seconds(const std::filesystem::path& dir);

Json training_summary_to_json(const TrainingSummary& summary);
// Throws Error naming `where` for anything missing or of another type.
TrainingSummary training_summary_from_json(const Json& json, const std::string& where);

}  // namespace sol
