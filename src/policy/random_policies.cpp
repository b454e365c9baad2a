// Policies that draw a schedule without looking at the text. One schedule is one draw for every
// sequence: keys hold the seed, the rollout and the episode's number, never the sequence's index.
#include <array>
#include <cmath>

#include "base/random.h"
#include "policy/axis.h"
#include "policy/policies.h"

namespace sol {
namespace {

class RandomUniformPolicy final : public Policy {
 public:
  RandomUniformPolicy(ActionSpace space, uint64_t seed) : space_(std::move(space)), seed_(seed) {}

  std::string name() const override { return "random-uniform"; }
  const ActionSpace& space() const override { return space_; }

  std::unique_ptr<PolicyState> begin(const Budget&, int, const EpisodeId& id) const override {
    auto state = std::make_unique<State>();
    state->id = id;
    return state;
  }

  void next(std::span<PolicyStep> steps) const override {
    for (PolicyStep& step : steps) {
      const EpisodeId& id = static_cast<State&>(*step.state).id;
      Random random({seed_, RandomStream::schedule, id.episode, id.rollout,
                     static_cast<uint32_t>(step.observation->step)});
      step.action = static_cast<int>(random.below(static_cast<uint32_t>(space_.size())));
      step.log_prob = static_cast<float>(-std::log(static_cast<double>(space_.size())));
    }
  }

 private:
  struct State : PolicyState {
    EpisodeId id;
  };
  ActionSpace space_;
  uint64_t seed_;
};

class RandomMatchedPolicy final : public Policy {
 public:
  RandomMatchedPolicy(ActionSpace space, uint64_t seed) : space_(std::move(space)), seed_(seed) {}

  std::string name() const override { return "random-matched"; }
  const ActionSpace& space() const override { return space_; }

  std::unique_ptr<PolicyState> begin(const Budget& budget, int horizon,
                                     const EpisodeId& id) const override {
    auto state = std::make_unique<State>();
    const Budget target = space_.clamp_off_axes(budget);
    for (const Axis axis : all_axes) {
      const LevelMix mix = mix_for_target(space_.levels(axis), value(target, axis));
      // Ties to even, as the reference's round().
      const auto high = static_cast<int>(std::nearbyint(mix.p_high * horizon));
      auto& schedule = state->levels[static_cast<size_t>(axis)];
      schedule.assign(static_cast<size_t>(horizon), mix.low);
      std::fill(schedule.begin(), schedule.begin() + high, mix.high);
      Random random(
          {seed_, RandomStream::schedule, id.episode, id.rollout, static_cast<uint32_t>(axis)});
      for (size_t i = schedule.size(); i > 1; --i)
        std::swap(schedule[i - 1], schedule[random.below(static_cast<uint32_t>(i))]);
    }
    return state;
  }

  // Only effective steps use up the schedule, as in the reference.
  void next(std::span<PolicyStep> steps) const override {
    for (PolicyStep& step : steps) {
      auto& state = static_cast<State&>(*step.state);
      step.log_prob = 0.0f;
      step.action = space_.dense_index();
      if (!step.observation->effective) continue;
      const size_t t = state.used++;
      step.action =
          space_.index(state.levels[0].at(t), state.levels[1].at(t), state.levels[2].at(t));
    }
  }

 private:
  struct State : PolicyState {
    std::array<std::vector<int>, 3> levels;
    size_t used = 0;
  };
  ActionSpace space_;
  uint64_t seed_;
};

}  // namespace

std::unique_ptr<Policy> make_random_uniform_policy(ActionSpace space, uint64_t seed) {
  return std::make_unique<RandomUniformPolicy>(std::move(space), seed);
}

std::unique_ptr<Policy> make_random_matched_policy(ActionSpace space, uint64_t seed) {
  return std::make_unique<RandomMatchedPolicy>(std::move(space), seed);
}

}  // namespace sol
