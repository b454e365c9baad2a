// Policies whose actions somebody else has chosen: one action always, or recorded schedules.
#include "base/fail.h"
#include "policy/policies.h"

namespace sol {
namespace {

template <typename T>
std::vector<T> level_and_dense(T level, T dense) {
  return level == dense ? std::vector<T>{dense} : std::vector<T>{level, dense};
}

class ConstantPolicy final : public Policy {
 public:
  explicit ConstantPolicy(const Action& action)
      : space_(level_and_dense(action.kappa, 1.0f), level_and_dense(action.rho, 1.0f),
               level_and_dense(action.bits, 16)),
        index_(space_.index(action)),
        name_(to_string(action)) {}

  std::string name() const override { return name_; }
  const ActionSpace& space() const override { return space_; }
  std::unique_ptr<PolicyState> begin(const Budget&, int, const EpisodeId&) const override {
    return std::make_unique<PolicyState>();
  }
  void next(std::span<PolicyStep> steps) const override {
    for (PolicyStep& step : steps) {
      step.action = index_;
      step.log_prob = 0.0f;
    }
  }

 private:
  ActionSpace space_;
  int index_;
  std::string name_;
};

class ReplayPolicy final : public Policy {
 public:
  ReplayPolicy(ActionSpace space, std::vector<std::vector<int>> schedules)
      : space_(std::move(space)), schedules_(std::move(schedules)) {
    for (size_t r = 0; r < schedules_.size(); ++r)
      for (size_t t = 0; t < schedules_[r].size(); ++t)
        if (schedules_[r][t] < 0 || schedules_[r][t] >= space_.size())
          fail("replay: schedule {}, step {}: action {} is outside 0..{}", r, t + 1,
               schedules_[r][t], space_.size() - 1);
  }

  std::string name() const override { return "replay"; }
  const ActionSpace& space() const override { return space_; }

  std::unique_ptr<PolicyState> begin(const Budget&, int horizon,
                                     const EpisodeId& id) const override {
    if (id.rollout >= schedules_.size())
      fail("replay: no schedule {}, only {} are recorded", id.rollout, schedules_.size());
    auto state = std::make_unique<State>();
    state->schedule = &schedules_[id.rollout];
    const uint64_t needed = (id.episode + 1) * static_cast<uint64_t>(horizon);
    if (state->schedule->size() < needed)
      fail("replay: schedule {} has {} steps, but {} are needed", id.rollout,
           state->schedule->size(), needed);
    state->first_step = id.episode * static_cast<uint64_t>(horizon);
    return state;
  }

  void next(std::span<PolicyStep> steps) const override {
    for (PolicyStep& step : steps) {
      const auto& state = static_cast<const State&>(*step.state);
      step.action =
          state.schedule->at(state.first_step + static_cast<size_t>(step.observation->step) - 1);
      step.log_prob = 0.0f;
    }
  }

 private:
  struct State : PolicyState {
    const std::vector<int>* schedule = nullptr;
    size_t first_step = 0;
  };
  ActionSpace space_;
  std::vector<std::vector<int>> schedules_;
};

}  // namespace

std::unique_ptr<Policy> make_constant_policy(const Action& action) {
  return std::make_unique<ConstantPolicy>(action);
}

std::unique_ptr<Policy> make_replay_policy(ActionSpace space,
                                           std::vector<std::vector<int>> schedules) {
  return std::make_unique<ReplayPolicy>(std::move(space), std::move(schedules));
}

}  // namespace sol
