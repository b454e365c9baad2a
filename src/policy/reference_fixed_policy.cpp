// The authors' fixed baseline: a round robin over the sequences of a batch (the reference's
// evaluate_fixed_matched_keep; golden/sol/heuristics.json). Unlike our fixed policy it depends on
// how sequences are batched, so the batch size and the number of sequences are part of it.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <string>

#include "base/fail.h"
#include "policy/axis.h"
#include "policy/policies.h"

namespace sol {
namespace {

// Decorrelates the axes: their turns start at different sequences.
constexpr std::array<int64_t, 3> turn_offset{0, 17, 37};

// The reference's targets are doubles as typed: the shortest decimal that rounds to the float.
double as_typed(float target) {
  return std::stod(fmt::format("{}", target));
}

// The reference counts each step of a batch in float32, by four interleaved partial sums.
double batch_sum(const std::vector<float>& values) {
  std::array<float, 4> partial{};
  for (size_t i = 0; i < values.size(); ++i) partial[i % 4] += values[i];
  return static_cast<double>((partial[0] + partial[1]) + (partial[2] + partial[3]));
}

// One axis over all batches of an evaluation.
class RoundRobin {
 public:
  RoundRobin(std::vector<float> levels, double target, Axis axis)
      : levels_(std::move(levels)),
        target_(target),
        axis_(axis),
        mix_(mix_for_target(levels_, target)) {}

  // The level of each sequence of a batch of `size` at step index t, from 0. Calls must follow the
  // reference's order: batch by batch, step by step.
  std::vector<int> step(int64_t size, int64_t t) {
    std::vector<int> chosen(static_cast<size_t>(size), mix_.low);
    if (mix_.low == mix_.high) return chosen;
    // κ keeps its share at every step; ρ and q make up for what rounding has lost so far.
    const double share = axis_ == Axis::kappa ? mix_.p_high : required_share(size);
    const int64_t high = std::clamp<int64_t>(
        static_cast<int64_t>(std::nearbyint(share * static_cast<double>(size))), 0, size);
    const int64_t first = ((t + turn_offset[static_cast<size_t>(axis_)]) * high) % size;
    for (int64_t i = 0; i < high; ++i) chosen[static_cast<size_t>((first + i) % size)] = mix_.high;
    std::vector<float> values;
    for (const int level : chosen) values.push_back(levels_[static_cast<size_t>(level)]);
    sum_ += batch_sum(values);
    count_ += size;
    return chosen;
  }

 private:
  double level(int index) const { return static_cast<double>(levels_[static_cast<size_t>(index)]); }

  double required_share(int64_t size) const {
    const double due =
        (target_ * static_cast<double>(count_ + size) - sum_) / static_cast<double>(size);
    const double required = std::clamp(due, level(0), level(static_cast<int>(levels_.size()) - 1));
    return (required - level(mix_.low)) / (level(mix_.high) - level(mix_.low));
  }

  std::vector<float> levels_;
  double target_;
  Axis axis_;
  LevelMix mix_;
  double sum_ = 0;
  int64_t count_ = 0;
};

class ReferenceFixedPolicy final : public Policy {
 public:
  ReferenceFixedPolicy(ActionSpace space, std::vector<int64_t> batches)
      : space_(std::move(space)), batches_(std::move(batches)) {
    for (const int64_t size : batches_)
      if (size < 1) fail("fixed-reference: a batch of {} sequences", size);
  }

  std::string name() const override { return "fixed-reference"; }
  const ActionSpace& space() const override { return space_; }

  std::unique_ptr<PolicyState> begin(const Budget& budget, int horizon,
                                     const EpisodeId& id) const override {
    if (id.single || id.episode > 0)
      fail(
          "fixed-reference is a schedule for an evaluation's batches, one episode each; for "
          "generation take 'fixed'");
    auto state = std::make_unique<State>();
    state->sequence = static_cast<int64_t>(id.sequence);
    state->target = space_.clamp_off_axes(budget);
    state->horizon = horizon;
    if (state->sequence >= std::accumulate(batches_.begin(), batches_.end(), int64_t{0}))
      fail("fixed-reference: sequence {} is beyond its {} batches", id.sequence, batches_.size());
    return state;
  }

  void next(std::span<PolicyStep> steps) const override {
    for (PolicyStep& step : steps) {
      auto& state = static_cast<State&>(*step.state);
      step.log_prob = 0.0f;
      step.action = space_.dense_index();
      if (!step.observation->effective) continue;
      const int t = step.observation->step - 1;
      if (state.schedule.empty()) state.schedule = play(state, t);
      step.action = state.schedule.at(static_cast<size_t>(t - state.first_effective));
    }
  }

 private:
  struct State : PolicyState {
    int64_t sequence = 0;
    Budget target;
    int horizon = 0;
    int first_effective = 0;
    std::vector<int> schedule;  // from the first effective step on
  };

  // Sequences of one evaluation have prefixes of one length, so a step counts for all or none, and
  // the whole evaluation up to this sequence's batch can be replayed without the others.
  std::vector<int> play(State& state, int first_effective) const {
    state.first_effective = first_effective;
    std::vector<RoundRobin> axes;
    for (const Axis axis : all_axes)
      axes.emplace_back(space_.levels(axis), as_typed(value(state.target, axis)), axis);
    std::vector<int> schedule;
    int64_t first = 0;
    for (const int64_t size : batches_) {
      const bool mine = state.sequence < first + size;
      for (int t = first_effective; t < state.horizon; ++t) {
        std::array<std::vector<int>, 3> levels;
        for (size_t i = 0; i < 3; ++i) levels[i] = axes[i].step(size, t);
        if (!mine) continue;
        const auto at = static_cast<size_t>(state.sequence - first);
        schedule.push_back(space_.index(levels[0][at], levels[1][at], levels[2][at]));
      }
      if (mine) break;
      first += size;
    }
    return schedule;
  }

  ActionSpace space_;
  std::vector<int64_t> batches_;
};

}  // namespace

std::unique_ptr<Policy> make_reference_fixed_policy(ActionSpace space,
                                                    std::vector<int64_t> batch_sizes) {
  return std::make_unique<ReferenceFixedPolicy>(std::move(space), std::move(batch_sizes));
}

}  // namespace sol
