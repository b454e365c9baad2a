#include "policy/budget_steering.h"

#include <algorithm>
#include <cassert>

namespace sol {
namespace {

// First level that is not below `value`; the last one when all are.
int first_at_least(std::span<const float> levels, float value) {
  const auto found = std::ranges::lower_bound(levels, value);
  const auto index = static_cast<int>(found - levels.begin());
  return std::min(index, static_cast<int>(levels.size()) - 1);
}

// Last level that is not above `value`; the first one when all are.
int last_at_most(std::span<const float> levels, float value) {
  const auto found = std::ranges::upper_bound(levels, value);
  return std::max(static_cast<int>(found - levels.begin()) - 1, 0);
}

// What all steps of the episode together should sum to, less what has been spent.
float still_due(float target, const SteeringState& state, float steps_left) {
  return target * (state.count + steps_left) - state.sum;
}

}  // namespace

float required_average(std::span<const float> levels, float target, const SteeringState& state,
                       float steps_left) {
  assert(!levels.empty() && steps_left >= 1);
  return std::clamp(still_due(target, state, steps_left) / steps_left, levels.front(),
                    levels.back());
}

int steer(std::span<const float> levels, float required, float target, const SteeringState& state,
          float steps_left, float bias) {
  const int high = first_at_least(levels, required);
  const int low = std::max(high - 1, 0);
  const float low_level = levels[static_cast<size_t>(low)];
  const float high_level = levels[static_cast<size_t>(high)];
  const float share = high == low ? 1.0f : (required - low_level) / (high_level - low_level);
  const int wanted = share + bias >= 0.5f ? high : low;

  // Even with the densest (sparsest) level at every later step, no less (more) would do.
  const float due = still_due(target, state, steps_left);
  const int least = first_at_least(levels, due - levels.back() * (steps_left - 1));
  const int most = last_at_most(levels, due - levels.front() * (steps_left - 1));
  // Where both cannot hold (levels too coarse for the target), overspending is avoided last: the
  // reference's order.
  return std::min(std::max(wanted, least), most);
}

}  // namespace sol
