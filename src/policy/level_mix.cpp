#include <algorithm>

#include "base/fail.h"
#include "policy/policies.h"

namespace sol {

LevelMix mix_for_target(const std::vector<float>& levels, double target) {
  if (levels.empty()) fail("no levels to mix for target {}", target);
  const int last = static_cast<int>(levels.size()) - 1;
  if (target <= static_cast<double>(levels.front())) return {0, 0, 0.0};
  if (target >= static_cast<double>(levels.back())) return {last, last, 1.0};
  const auto above =
      std::lower_bound(levels.begin(), levels.end(), target,
                       [](float level, double t) { return static_cast<double>(level) < t; });
  const int high = static_cast<int>(above - levels.begin());
  if (static_cast<double>(*above) == target) return {high, high, 0.0};
  const double low_level = levels[static_cast<size_t>(high) - 1];
  return {high - 1, high, (target - low_level) / (static_cast<double>(*above) - low_level)};
}

}  // namespace sol
