// What a training run left in its directory, for tables and curves.
#pragma once

#include <filesystem>

#include "base/json.h"

namespace sol {

// From DIR/train.jsonl (docs/formats.md): {"updates", "seconds", "steps", "collections",
// "policy_parameters", "curve": [{"update", "seconds", "reward", "perplexity", "gap", "entropy",
// "clip_fraction"}, ...]}; the curve has at most 200 points, each the mean of those it stands for.
// Throws Error for a file or a controller that is missing or malformed.
Json training_summary(const std::filesystem::path& dir);

}  // namespace sol
