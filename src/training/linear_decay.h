// Settings that change with a run's progress, as the learning rate and the weight of the entropy
// do.
#pragma once

#include <algorithm>
#include <cstdint>

namespace sol {

// From `first` before any step linearly to `last` at `steps`, which stays; steps > 0.
inline double linear_decay(double first, double last, int64_t step, int64_t steps) {
  const double done = std::min(1.0, static_cast<double>(step) / static_cast<double>(steps));
  return first + done * (last - first);
}

}  // namespace sol
