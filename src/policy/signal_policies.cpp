// EMC and DAC: hand-made policies that spend more after steps of high entropy or drift and steer
// towards the budget (paper, appendix, "Designing static strategies"; docs/arithmetic.md, "EMC and
// DAC").
#include <algorithm>
#include <cmath>

#include "base/fail.h"
#include "policy/axis.h"
#include "policy/budget_steering.h"
#include "policy/policies.h"

namespace sol {
namespace {

// Without a signal (no previous position: a prompt of one token) neither more nor less is asked
// for.
constexpr float no_signal = 0.5f;

class SignalPolicy : public Policy {
 public:
  SignalPolicy(ActionSpace space, const std::array<float, 3>& gamma)
      : space_(std::move(space)), gamma_(gamma) {
    for (const Axis axis : all_axes) levels_[index(axis)] = space_.levels(axis);
  }

  const ActionSpace& space() const override { return space_; }

  std::unique_ptr<PolicyState> begin(const Budget& budget, int horizon,
                                     const EpisodeId&) const override {
    auto state = std::make_unique<State>();
    state->target = space_.clamp_off_axes(budget);
    state->horizon = horizon;
    return state;
  }

  void next(std::span<PolicyStep> steps) const override {
    for (PolicyStep& step : steps) {
      step.log_prob = 0.0f;
      step.action = step.observation->effective
                        ? choose(static_cast<State&>(*step.state), *step.observation)
                        : space_.dense_index();
    }
  }

 protected:
  virtual float signal(const Observation& seen) const = 0;  // in [0, 1]

 private:
  struct State : PolicyState {
    Budget target;
    int horizon = 0;
    std::array<SteeringState, 3> axes;
  };

  static size_t index(Axis axis) { return static_cast<size_t>(axis); }

  int choose(State& state, const Observation& seen) const {
    const float u = signal(seen);
    const auto left = static_cast<float>(state.horizon - seen.step + 1);
    std::array<int, 3> chosen{};
    for (const Axis axis : all_axes) {
      const size_t i = index(axis);
      SteeringState& steering = state.axes[i];
      const float target = value(state.target, axis);
      chosen[i] = steer(levels_[i], required_average(levels_[i], target, steering, left), target,
                        steering, left, gamma_[i] * (u - 0.5f));
      steering.sum += levels_[i][static_cast<size_t>(chosen[i])];
      steering.count += 1;
    }
    return space_.index(chosen[0], chosen[1], chosen[2]);
  }

  ActionSpace space_;
  std::array<float, 3> gamma_;
  std::array<std::vector<float>, 3> levels_;
};

class EntropyPolicy final : public SignalPolicy {
 public:
  EntropyPolicy(ActionSpace space, int vocab_size, const std::array<float, 3>& gamma)
      : SignalPolicy(std::move(space), gamma), most_(std::log(static_cast<float>(vocab_size))) {
    if (vocab_size < 2) fail("emc: a vocabulary of {} tokens has no entropy to go by", vocab_size);
  }
  std::string name() const override { return "emc"; }
  Needs needs() const override { return {.entropy = true}; }

 protected:
  float signal(const Observation& seen) const override {
    if (seen.previous_entropy < 0) return no_signal;
    return std::clamp(seen.previous_entropy / most_, 0.0f, 1.0f);
  }

 private:
  float most_;  // entropy of the uniform distribution, nats
};

class DriftPolicy final : public SignalPolicy {
 public:
  DriftPolicy(ActionSpace space, const std::array<float, 3>& gamma, bool reference)
      : SignalPolicy(std::move(space), gamma), reference_(reference) {}
  std::string name() const override { return reference_ ? "dac-reference" : "dac"; }
  Needs needs() const override { return {.drift = true}; }

 protected:
  float signal(const Observation& seen) const override {
    if (seen.drift < 0) return no_signal;
    // The authors' code clamps 1 - cos to 1 before it halves it.
    return reference_ ? std::min(seen.drift, 0.5f) : seen.drift;
  }

 private:
  bool reference_;
};

}  // namespace

std::unique_ptr<Policy> make_entropy_policy(ActionSpace space, int vocab_size,
                                            const std::array<float, 3>& gamma) {
  return std::make_unique<EntropyPolicy>(std::move(space), vocab_size, gamma);
}

std::unique_ptr<Policy> make_drift_policy(ActionSpace space, const std::array<float, 3>& gamma,
                                          bool reference) {
  return std::make_unique<DriftPolicy>(std::move(space), gamma, reference);
}

}  // namespace sol
