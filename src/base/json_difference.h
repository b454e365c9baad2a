// Where two JSON documents differ, for messages.
#pragma once

#include <optional>
#include <string>

#include "base/json.h"

namespace sol {

struct JsonDifference {
  std::string field;          // its path, "config/rollout/batch"
  std::string first, second;  // what stands there, as text, or "absent"
};

// The first difference; nullopt where there is none.
std::optional<JsonDifference> first_difference(const Json& first, const Json& second);

}  // namespace sol
