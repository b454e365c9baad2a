// The fixed baseline's averages: over sequences and steps, over single sequences, and jointly.
#include <algorithm>
#include <array>
#include <set>

#include "base/json.h"
#include "policy/axis.h"
#include "policy/policies.h"
#include "support_policy.h"

namespace sol {
namespace {

// The schedule that a policy plays for one episode, all steps effective unless told otherwise.
std::vector<int> play(const Policy& policy, const Budget& budget, int horizon, const EpisodeId& id,
                      int ineffective = 0) {
  const auto state = policy.begin(budget, horizon, id);
  std::vector<int> schedule;
  for (int t = 1; t <= horizon; ++t) {
    Observation seen;
    seen.step = t;
    seen.effective = t > ineffective;
    PolicyStep step{state.get(), &seen};
    policy.next({&step, 1});
    EXPECT_EQ(step.log_prob, 0.0f);
    schedule.push_back(step.action);
  }
  return schedule;
}

// Two levels on every axis, so that an axis' average is its share of high steps.
ActionSpace halves() {
  return ActionSpace({0.25f, 0.75f}, {0.25f, 0.75f}, {4, 12});
}

Budget with_shares(double kappa, double rho, double eta) {
  const auto level = [](double share) { return static_cast<float>(0.25 + 0.5 * share); };
  return {level(kappa), level(rho), level(eta)};
}

std::array<bool, 3> high(const ActionSpace& space, int action) {
  const Action a = space.action(action);
  return {a.kappa > 0.5f, a.rho > 0.5f, a.bits > 8};
}

struct Shares {
  std::array<double, 3> axis{};
  double all = 0;  // high on every axis
};

Shares shares(const Policy& policy, const Budget& budget, int sequences, int horizon) {
  Shares result;
  for (int i = 0; i < sequences; ++i)
    for (const int action : play(policy, budget, horizon, {.sequence = static_cast<uint64_t>(i)})) {
      const auto is_high = high(policy.space(), action);
      for (size_t axis = 0; axis < 3; ++axis) result.axis[axis] += is_high[axis];
      result.all += is_high[0] && is_high[1] && is_high[2];
    }
  for (double& share : result.axis) share /= sequences * horizon;
  result.all /= sequences * horizon;
  return result;
}

TEST(LevelMix, AgreesWithTheReference) {
  const Json golden = read_json(test::test_data() / "golden/sol/mix.json");
  ASSERT_EQ(golden["mix"].size(), 130u);
  for (const Json& row : golden["mix"]) {
    const auto levels = golden["axes"][row[0].get<std::string>()].get<std::vector<float>>();
    const LevelMix mix = mix_for_target(levels, row[1].get<double>());
    EXPECT_EQ(mix.low, row[2].get<int>()) << row.dump();
    EXPECT_EQ(mix.high, row[3].get<int>()) << row.dump();
    EXPECT_NEAR(mix.p_high, row[4].get<double>(), 1e-12) << row.dump();
  }
}

RC_GTEST_PROP(LevelMixProperty, AveragesToTheTargetWithinTheLevels, ()) {
  const auto thousandths = *rc::gen::nonEmpty<std::set<int>>(
      rc::gen::container<std::set<int>>(rc::gen::inRange(1, 1001)));
  std::vector<float> levels;
  for (const int n : thousandths) levels.push_back(static_cast<float>(n) / 1000.0f);
  const double target = *rc::gen::inRange(0, 10001) / 10000.0;
  const LevelMix mix = mix_for_target(levels, target);
  RC_ASSERT(mix.high == mix.low || mix.high == mix.low + 1);
  RC_ASSERT(mix.p_high >= 0.0 && mix.p_high <= 1.0);
  const double low = levels[static_cast<size_t>(mix.low)];
  const double high_level = levels[static_cast<size_t>(mix.high)];
  const double expected =
      std::clamp(target, static_cast<double>(levels.front()), static_cast<double>(levels.back()));
  RC_ASSERT(std::abs(low + mix.p_high * (high_level - low) - expected) < 1e-12);
}

TEST(FixedPolicy, MeetsTheAverageOverSequencesAndSteps) {
  const auto policy = make_fixed_policy(halves());
  for (const auto& [sequences, horizon, bound] : {std::tuple{64, 16, 0.005},
                                                  {112, 16, 0.005},
                                                  {245, 16, 0.005},
                                                  {64, 64, 0.005},
                                                  {64, 4, 0.02},
                                                  {8, 16, 0.03}})
    for (int percent = 2; percent < 100; percent += 3) {
      const double p = percent / 100.0;
      const Shares result = shares(*policy, with_shares(p, p, p), sequences, horizon);
      for (const double share : result.axis)
        EXPECT_NEAR(share, p, bound) << sequences << " sequences x " << horizon;
    }
}

TEST(FixedPolicy, AxesAreCloseToIndependent) {
  const auto policy = make_fixed_policy(halves());
  for (const double kappa : {0.25, 0.5, 0.8})
    for (const double rho : {0.25, 0.5, 0.8})
      for (const double eta : {0.25, 0.5, 0.8}) {
        const Shares result = shares(*policy, with_shares(kappa, rho, eta), 64, 16);
        EXPECT_NEAR(result.all, kappa * rho * eta, 0.01) << kappa << " " << rho << " " << eta;
      }
}

TEST(FixedPolicy, EveryStepAndEverySequenceIsNearItsAverage) {
  const auto policy = make_fixed_policy(halves());
  for (const double p : {0.1, 0.3, 0.5, 0.9}) {
    std::array<std::array<int, 16>, 3> at_step{};
    for (uint64_t i = 0; i < 64; ++i) {
      std::array<int, 3> of_sequence{};
      const auto schedule = play(*policy, with_shares(p, p, p), 16, {.sequence = i});
      for (size_t t = 0; t < 16; ++t)
        for (size_t axis = 0; axis < 3; ++axis) {
          const bool is_high = high(policy->space(), schedule[t])[axis];
          at_step[axis][t] += is_high;
          of_sequence[axis] += is_high;
        }
      for (const int count : of_sequence) EXPECT_NEAR(count / 16.0, p, 0.18);
    }
    for (const auto& axis : at_step)
      for (const int count : axis) EXPECT_NEAR(count / 64.0, p, 0.08);
  }
}

TEST(FixedPolicy, DependsOnSequenceAndStepOnly) {
  const auto policy = make_fixed_policy(halves());
  const Budget budget = with_shares(0.3, 0.6, 0.5);
  const auto expected = play(*policy, budget, 16, {.sequence = 5});
  EXPECT_EQ(play(*policy, budget, 16, {.sequence = 5, .rollout = 9}), expected);
  EXPECT_NE(play(*policy, budget, 16, {.sequence = 6}), expected);

  // Another draw of the mix is the same one further on.
  const auto shifted = make_fixed_policy(halves(), 1000);
  EXPECT_EQ(shifted->name(), "fixed@1000");
  EXPECT_EQ(play(*shifted, budget, 16, {.sequence = 5}),
            play(*policy, budget, 16, {.sequence = 1005}));
  EXPECT_NE(play(*shifted, budget, 16, {.single = true}),
            play(*policy, budget, 16, {.single = true}));

  // All sequences at once, interleaved, give what each gives alone.
  std::vector<std::unique_ptr<PolicyState>> states;
  for (uint64_t i = 0; i < 10; ++i) states.push_back(policy->begin(budget, 16, {.sequence = i}));
  for (int t = 1; t <= 16; ++t) {
    Observation seen;
    seen.step = t;
    std::vector<PolicyStep> steps;
    for (const auto& state : states) steps.push_back({state.get(), &seen});
    policy->next(steps);
    EXPECT_EQ(steps[5].action, expected[static_cast<size_t>(t) - 1]);
  }

  // The second episode continues where the first ends.
  auto longer = play(*policy, budget, 32, {.sequence = 5});
  EXPECT_EQ(play(*policy, budget, 16, {.sequence = 5, .episode = 1}),
            std::vector<int>(longer.begin() + 16, longer.end()));
}

TEST(FixedPolicy, TargetsOnALevelOrOutsideAllMixNothing) {
  const auto policy = make_fixed_policy(ActionSpace({0.25f, 0.5f, 1.0f}, {0.5f, 1.0f}, {8}));
  for (const int action : play(*policy, {0.5f, 0.3f, 0.9f}, 64, {.sequence = 3}))
    EXPECT_EQ(policy->space().action(action), (Action{0.5f, 0.5f, 8}));
  for (const int action : play(*policy, {1.0f, 1.0f, 0.9f}, 64, {.single = true}))
    EXPECT_EQ(policy->space().action(action), (Action{1.0f, 1.0f, 8}));
}

RC_GTEST_PROP(FixedPolicyProperty, ASingleSequenceIsNeverMoreThanOneLevelStepOff, ()) {
  const auto policy = make_fixed_policy(halves());
  const auto share = rc::gen::map(rc::gen::inRange(0, 1001), [](int n) { return n / 1000.0; });
  const std::array<double, 3> p{*share, *share, *share};
  const int ineffective = *rc::gen::inRange(0, 5);
  const auto episode = *rc::gen::inRange<uint64_t>(0, 20);
  const auto schedule = play(*policy, with_shares(p[0], p[1], p[2]), 64,
                             {.episode = episode, .single = true}, ineffective);
  std::array<double, 3> count{};
  for (int t = ineffective; t < 64; ++t) {
    const auto is_high = high(policy->space(), schedule[static_cast<size_t>(t)]);
    for (size_t axis = 0; axis < 3; ++axis) {
      count[axis] += is_high[axis];
      // From the sequence's start the sum is within one step, so between two points within two.
      const double bound = episode == 0 ? 1.0 : 2.0;
      RC_ASSERT(std::abs(count[axis] - (t - ineffective + 1) * p[axis]) <= bound);
    }
  }
  for (int t = 0; t < ineffective; ++t)
    RC_ASSERT(schedule[static_cast<size_t>(t)] == policy->space().dense_index());
}

TEST(FixedPolicy, ASingleSequenceOwesAcrossEpisodes) {
  const auto policy = make_fixed_policy(halves());
  const Budget budget = with_shares(0.3, 0.45, 0.71);
  const auto whole = play(*policy, budget, 160, {.single = true});
  std::vector<int> parts;
  for (uint64_t episode = 0; episode < 10; ++episode) {
    const auto part = play(*policy, budget, 16, {.episode = episode, .single = true});
    parts.insert(parts.end(), part.begin(), part.end());
  }
  EXPECT_EQ(parts, whole);
}

TEST(FixedPolicy, ASingleSequencesAxesDoNotMoveInStep) {
  const auto policy = make_fixed_policy(halves());
  for (const double p : {0.25, 0.5, 0.75}) {
    std::array<double, 3> pairs{};
    for (const int action : play(*policy, with_shares(p, p, p), 256, {.single = true})) {
      const auto h = high(policy->space(), action);
      pairs[0] += h[0] && h[1];
      pairs[1] += h[0] && h[2];
      pairs[2] += h[1] && h[2];
    }
    for (const double count : pairs) EXPECT_NEAR(count / 256, p * p, 0.1) << p;
  }
}

}  // namespace
}  // namespace sol
