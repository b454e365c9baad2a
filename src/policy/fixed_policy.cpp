// The fixed baseline (docs/arithmetic.md, "Fixed baseline"): what a user without a controller would
// do to meet a budget that lies between two levels.
#include <fmt/format.h>

#include <array>
#include <cmath>

#include "policy/axis.h"
#include "policy/policies.h"

namespace sol {
namespace {

// Fractions of irrational numbers times 2^64. A point (i, t) is high where
// frac(½ + i·sequence + t·step) < p: a Kronecker sequence, evenly spread over i, over t and over
// both. Steps: the numbers whose multiples spread best over an episode. Sequences: those roots of
// primes that, with these steps, gave the smallest errors of each axis' average and of the axes'
// joint shares over 64..245 sequences and 4..64 steps (tests/policy/fixed_policy_test.cpp has the
// bounds).
struct Multipliers {
  uint64_t sequence, step;
};
constexpr std::array<Multipliers, 3> multipliers{{
    {0xbb67ae8584caa73b, 0x9e3779b97f4a7c15},  // √3, golden ratio
    {0x9b05688c2b3e6c1f, 0x6a09e667f3bcc908},  // √13, √2
    {0x9159015a3070dd17, 0xbb67ae8584caa73b},  // √31, √3
}};

// In 64-bit integers, so that every machine and every size of i gives the same schedule.
double point(size_t axis, uint64_t sequence, uint64_t step) {
  const uint64_t fraction =
      (uint64_t{1} << 63) + sequence * multipliers[axis].sequence + step * multipliers[axis].step;
  return static_cast<double>(fraction >> 11) * 0x1p-53;
}

struct FixedState : PolicyState {
  std::array<LevelMix, 3> mixes;
  EpisodeId id;
  uint64_t first_step = 0;       // steps of this sequence's earlier episodes
  std::array<double, 3> owed{};  // single: share of high steps still due, per axis
  uint64_t diffused = 0;         // single: effective steps taken
};

// Error diffusion whose threshold moves (as in digital halftoning), so that axes with equal shares
// do not move in step. With thresholds in (0, 1) what is owed stays in (-1, 1): the sum over any
// run of first steps is within one level step of its target.
std::array<int, 3> diffuse(FixedState& state, uint64_t first_sequence) {
  std::array<int, 3> levels{};
  ++state.diffused;
  for (size_t axis = 0; axis < 3; ++axis) {
    const LevelMix& mix = state.mixes[axis];
    const double due = state.owed[axis] + mix.p_high;
    const double threshold = 0.25 + 0.5 * point(axis, first_sequence, state.diffused);
    const bool high = mix.p_high >= 1.0 || (mix.p_high > 0.0 && due >= threshold);
    state.owed[axis] = due - (high ? 1.0 : 0.0);
    levels[axis] = high ? mix.high : mix.low;
  }
  return levels;
}

class FixedPolicy final : public Policy {
 public:
  FixedPolicy(ActionSpace space, uint64_t first_sequence)
      : space_(std::move(space)), first_sequence_(first_sequence) {}

  std::string name() const override {
    return first_sequence_ == 0 ? "fixed" : fmt::format("fixed@{}", first_sequence_);
  }
  const ActionSpace& space() const override { return space_; }

  std::unique_ptr<PolicyState> begin(const Budget& budget, int horizon,
                                     const EpisodeId& id) const override {
    auto state = std::make_unique<FixedState>();
    for (const Axis axis : all_axes)
      state->mixes[static_cast<size_t>(axis)] = mix_for_target(
          space_.levels(axis), static_cast<double>(value(space_.clamp_off_axes(budget), axis)));
    state->id = id;
    state->first_step = id.episode * static_cast<uint64_t>(horizon);
    // What earlier episodes left owed carries over; replaying them keeps this a function of the id.
    // As if they had had this budget and only steps that count: with others (a server's changing
    // budgets, the first tokens of a short prompt) it may owe a step more or less.
    if (id.single)
      for (uint64_t step = 0; step < state->first_step; ++step) diffuse(*state, first_sequence_);
    return state;
  }

  void next(std::span<PolicyStep> steps) const override {
    for (PolicyStep& step : steps) {
      auto& state = static_cast<FixedState&>(*step.state);
      step.action = choose(state, *step.observation);
      step.log_prob = 0.0f;
    }
  }

 private:
  int choose(FixedState& state, const Observation& seen) const {
    if (!seen.effective) return space_.dense_index();  // does not count, so nothing is paid back
    std::array<int, 3> levels{};
    if (state.id.single) {
      levels = diffuse(state, first_sequence_);
    } else {
      const uint64_t t = state.first_step + static_cast<uint64_t>(seen.step);
      for (size_t axis = 0; axis < 3; ++axis) {
        const LevelMix& mix = state.mixes[axis];
        levels[axis] =
            point(axis, first_sequence_ + state.id.sequence, t) < mix.p_high ? mix.high : mix.low;
      }
    }
    return space_.index(levels[0], levels[1], levels[2]);
  }

  ActionSpace space_;
  uint64_t first_sequence_;
};

}  // namespace

std::unique_ptr<Policy> make_fixed_policy(ActionSpace space, uint64_t first_sequence) {
  return std::make_unique<FixedPolicy>(std::move(space), first_sequence);
}

}  // namespace sol
