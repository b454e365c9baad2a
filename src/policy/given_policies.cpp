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
  ReplayPolicy(ActionSpace space, RecordedSchedules schedules, Needs needs)
      : space_(std::move(space)), schedules_(std::move(schedules)), needs_(needs) {
    for (const auto& [key, schedule] : schedules_)
      for (size_t t = 0; t < schedule.size(); ++t)
        if (schedule[t] < 0 || schedule[t] >= space_.size())
          fail("replay: sequence {}, rollout {}, step {}: action {} is outside 0..{}", key.sequence,
               key.rollout, t + 1, schedule[t], space_.size() - 1);
  }

  std::string name() const override { return "replay"; }
  const ActionSpace& space() const override { return space_; }
  Needs needs() const override { return needs_; }

  std::unique_ptr<PolicyState> begin(const Budget&, int horizon,
                                     const EpisodeId& id) const override {
    const auto found = schedules_.find({id.sequence, id.rollout});
    if (found == schedules_.end())
      fail("replay: no schedule was recorded for sequence {}, rollout {}", id.sequence, id.rollout);
    const uint64_t needed = (id.episode + 1) * static_cast<uint64_t>(horizon);
    if (found->second.size() < needed)
      fail("replay: the schedule of sequence {}, rollout {} has {} steps, but {} are needed",
           id.sequence, id.rollout, found->second.size(), needed);
    auto state = std::make_unique<State>();
    state->schedule = &found->second;
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
  RecordedSchedules schedules_;
  Needs needs_;
};

}  // namespace

std::unique_ptr<Policy> make_constant_policy(const Action& action) {
  return std::make_unique<ConstantPolicy>(action);
}

std::unique_ptr<Policy> make_replay_policy(ActionSpace space, RecordedSchedules schedules,
                                           Policy::Needs needs) {
  return std::make_unique<ReplayPolicy>(std::move(space), std::move(schedules), needs);
}

}  // namespace sol
