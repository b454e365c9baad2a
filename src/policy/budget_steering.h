// The greedy rule by which hand-made policies meet a budget (paper, appendix, "Designing static
// strategies": "budget-steering"; docs/arithmetic.md, "EMC and DAC").
#pragma once

#include <span>

namespace sol {

// One axis of one episode. All float32 and in the reference's order of operations: levels lie on
// the boundaries of its comparisons, where the last bit decides.
struct SteeringState {
  float sum = 0;    // of the levels taken so far, in budget units
  float count = 0;  // effective steps so far
};

// The average that the remaining `steps_left` steps (this one included, at least 1) must have,
// clamped to the levels' range. `levels` ascend and are not empty.
float required_average(std::span<const float> levels, float target, const SteeringState& state,
                       float steps_left);

// The level to take now: of the two around `required` the upper one when p + bias >= 1/2, p being
// its share in their mix; then moved so that the target stays attainable over the steps that are
// left. `bias` is gamma * (signal - 1/2): positive asks for more compute.
int steer(std::span<const float> levels, float required, float target, const SteeringState& state,
          float steps_left, float bias);

}  // namespace sol
