// Random, constant, replayed and learned policies.
#include "policy/policies.h"

#include <algorithm>
#include <map>

#include "support_policy.h"

namespace sol {
namespace {

using test::error_of;
using ::testing::HasSubstr;

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
    schedule.push_back(step.action);
  }
  return schedule;
}

TEST(RandomUniformPolicy, OneScheduleIsOneDrawForEverySequence) {
  const auto policy = make_random_uniform_policy(test::two_levels(), 3);
  const auto schedule = play(*policy, {}, 64, {.sequence = 1, .rollout = 2});
  EXPECT_EQ(play(*policy, {}, 64, {.sequence = 9, .rollout = 2}), schedule);
  EXPECT_NE(play(*policy, {}, 64, {.sequence = 1, .rollout = 3}), schedule);
  EXPECT_NE(play(*policy, {}, 64, {.sequence = 1, .episode = 1, .rollout = 2}), schedule);
  EXPECT_NE(play(*make_random_uniform_policy(test::two_levels(), 4), {}, 64, {.rollout = 2}),
            schedule);
}

TEST(RandomUniformPolicy, DrawsEveryActionEquallyOften) {
  const auto policy = make_random_uniform_policy(test::two_levels(), 3);
  std::map<int, int> counts;
  for (uint32_t rollout = 0; rollout < 500; ++rollout)
    for (const int action : play(*policy, {}, 16, {.rollout = rollout})) ++counts[action];
  ASSERT_EQ(counts.size(), 8u);
  for (const auto& [action, count] : counts) EXPECT_NEAR(count, 1000, 150) << action;
}

RC_GTEST_PROP(RandomMatchedPolicyProperty, PlaysTheRoundedShareOfEachAxis, ()) {
  const ActionSpace space({0.1f, 0.6f, 1.0f}, {0.4f, 0.8f, 1.0f}, {5, 7, 16});
  const auto policy = make_random_matched_policy(space, *rc::gen::arbitrary<uint64_t>());
  const auto target = rc::gen::map(rc::gen::inRange(0, 1001), [](int n) { return n / 1000.0f; });
  const Budget budget{*target, *target, *target};
  const int horizon = *rc::gen::inRange(1, 65);
  const EpisodeId id{.rollout = *rc::gen::inRange(0u, 1000u)};
  const auto schedule = play(*policy, budget, horizon, id);

  const auto expect = [&](const std::vector<float>& levels, float wanted, auto level_of) {
    const LevelMix mix = mix_for_target(levels, static_cast<double>(wanted));
    int count = 0;
    for (const int index : schedule) {
      const float level = level_of(space.action(index));
      RC_ASSERT(level == levels[static_cast<size_t>(mix.low)] ||
                level == levels[static_cast<size_t>(mix.high)]);
      count += level == levels[static_cast<size_t>(mix.high)];
    }
    if (mix.low != mix.high)
      RC_ASSERT(count == static_cast<int>(std::nearbyint(mix.p_high * horizon)));
  };
  expect(space.levels(Axis::kappa), budget.kappa, [](const Action& a) { return a.kappa; });
  expect(space.levels(Axis::rho), budget.rho, [](const Action& a) { return a.rho; });
  expect(space.levels(Axis::eta), budget.eta, [](const Action& a) { return a.eta(); });

  const EpisodeId other{.sequence = 77, .rollout = id.rollout};
  RC_ASSERT(play(*policy, budget, horizon, other) == schedule);
}

// Numbers of high steps that the reference drew: golden heuristics.json, "random".
TEST(RandomMatchedPolicy, RoundsAsTheReference) {
  const auto highs = [](double target, double low, double high, int horizon) {
    const LevelMix mix =
        mix_for_target({static_cast<float>(low), static_cast<float>(high)}, target);
    return static_cast<int>(std::nearbyint(mix.p_high * horizon));
  };
  EXPECT_EQ(highs(0.5, 0.1, 1.0, 16), 7);
  EXPECT_EQ(highs(0.8, 0.6, 1.0, 16), 8);
  EXPECT_EQ(highs(0.37, 0.1, 1.0, 16), 5);
  EXPECT_EQ(highs(0.71, 0.6, 1.0, 16), 4);
  EXPECT_EQ(highs(0.8, 0.6, 1.0, 15), 7);
}

TEST(RandomMatchedPolicy, AxesArePermutedIndependentlyAndDrawsDiffer) {
  const ActionSpace space({0.25f, 0.75f}, {0.25f, 0.75f}, {4, 12});
  const auto policy = make_random_matched_policy(space, 1);
  const Budget half{0.5f, 0.5f, 0.5f};
  std::map<int, int> counts;
  for (uint32_t rollout = 0; rollout < 500; ++rollout)
    for (const int action : play(*policy, half, 16, {.rollout = rollout})) ++counts[action];
  ASSERT_EQ(counts.size(), 8u);
  for (const auto& [action, count] : counts) EXPECT_NEAR(count, 1000, 150) << action;
  EXPECT_NE(play(*policy, half, 16, {.rollout = 0}), play(*policy, half, 16, {.rollout = 1}));
  EXPECT_NE(play(*policy, half, 16, {.episode = 1}), play(*policy, half, 16, {}));
}

TEST(RandomMatchedPolicy, OnlyEffectiveStepsUseUpTheSchedule) {
  const auto policy = make_random_matched_policy(test::two_levels(), 1);
  const Budget budget{0.5f, 0.8f, 0.6f};
  const auto whole = play(*policy, budget, 16, {});
  const auto late = play(*policy, budget, 16, {}, 5);
  EXPECT_EQ(std::vector<int>(late.begin(), late.begin() + 5),
            std::vector<int>(5, policy->space().dense_index()));
  EXPECT_EQ(std::vector<int>(late.begin() + 5, late.end()),
            std::vector<int>(whole.begin(), whole.end() - 5));
}

TEST(ConstantPolicy, PlaysItsActionInASpaceWithTheDenseOne) {
  const auto policy = make_constant_policy({0.5f, 0.7f, 8});
  for (const int action : play(*policy, {}, 4, {}))
    EXPECT_EQ(policy->space().action(action), (Action{0.5f, 0.7f, 8}));
  EXPECT_TRUE(policy->space().action(policy->space().dense_index()).dense());
  EXPECT_EQ(policy->name(), "k050-s070-q8");
  const auto dense = make_constant_policy({});
  EXPECT_EQ(dense->space().size(), 1);
  EXPECT_EQ(play(*dense, {}, 2, {}), (std::vector<int>{0, 0}));
}

TEST(ReplayPolicy, PlaysRecordedSchedules) {
  const auto policy =
      make_replay_policy(test::two_levels(), {{{3, 0}, {0, 1, 2, 3}}, {{0, 1}, {7, 6, 5, 4}}});
  EXPECT_EQ(play(*policy, {}, 4, {.sequence = 3}), (std::vector<int>{0, 1, 2, 3}));
  EXPECT_EQ(play(*policy, {}, 4, {.rollout = 1}), (std::vector<int>{7, 6, 5, 4}));
  EXPECT_EQ(play(*policy, {}, 2, {.episode = 1, .rollout = 1}), (std::vector<int>{5, 4}));
}

TEST(ReplayPolicy, RejectsWhatItCannotPlay) {
  EXPECT_THAT(error_of([] {
                make_replay_policy(test::two_levels(), {{{4, 0}, {0, 1}}, {{4, 1}, {3, 8}}});
              }),
              HasSubstr("sequence 4, rollout 1, step 2: action 8"));
  EXPECT_THROW(make_replay_policy(test::two_levels(), {{{0, 0}, {-1}}}), Error);
  const auto policy = make_replay_policy(test::two_levels(), {{{0, 0}, {0, 1, 2, 3}}});
  EXPECT_THAT(error_of([&] { policy->begin({}, 4, {.rollout = 1}); }),
              HasSubstr("no schedule was recorded for sequence 0, rollout 1"));
  EXPECT_THROW(policy->begin({}, 4, {.sequence = 1}), Error);
  EXPECT_THAT(error_of([&] { policy->begin({}, 4, {.episode = 1}); }), HasSubstr("8 are needed"));
}

// A network for 8 actions and the observations of some episodes.
class LearnedPolicy : public testing::Test {
 protected:
  static constexpr size_t hidden = 12;
  PolicyNetworkShape shape_{.hidden_size = 12,
                            .actions = 8,
                            .d_model = 16,
                            .heads = 2,
                            .layers = 1,
                            .mlp_ratio = 2.0,
                            .action_dim = 4,
                            .max_length = 16};
  std::shared_ptr<const PolicyNetwork> network_ =
      std::make_shared<const PolicyNetwork>(shape_, test::random_parameters(shape_, 5));
  std::vector<float> values_ = test::random_vector(2 * hidden, 6);

  Observation observe(int step) const {
    Observation seen;
    seen.hidden = values_.data();
    seen.embedding = values_.data() + hidden;
    seen.features = {static_cast<float>(step) / 16, 1, 0.5f, 0.5f, 0.5f, 0, 0, 0};
    seen.step = step;
    return seen;
  }

  std::vector<float> logits(const Observation& seen) const {
    PolicyNetwork::State state;
    std::vector<float> result(8);
    const PolicyNetwork::Input input{&state,        seen.hidden, seen.embedding,
                                     seen.features, -1,          result.data()};
    network_->step({&input, 1});
    return result;
  }

  PolicyStep first_step(const Policy& policy, const EpisodeId& id) const {
    const Observation seen = observe(1);
    const auto state = policy.begin({}, 16, id);
    PolicyStep step{state.get(), &seen};
    policy.next({&step, 1});
    return step;
  }
};

TEST_F(LearnedPolicy, GreedyTakesTheLargestLogit) {
  const auto policy = make_learned_policy(test::two_levels(), network_);
  EXPECT_EQ(policy->name(), "learned");
  EXPECT_TRUE(policy->needs().hidden);
  EXPECT_TRUE(policy->needs().embedding);
  EXPECT_FALSE(policy->needs().entropy);
  const auto expected = logits(observe(1));
  const PolicyStep step = first_step(*policy, {});
  EXPECT_EQ(step.action, std::max_element(expected.begin(), expected.end()) - expected.begin());
  EXPECT_EQ(step.log_prob, 0.0f);
}

TEST_F(LearnedPolicy, TiesGoToTheLowerIndex) {
  Parameters parameters = test::random_parameters(shape_, 5);
  for (const char* name : {"pi.weight", "pi.bias", "budget_head.2.weight", "budget_head.2.bias"})
    std::fill(parameters[name].values.begin(), parameters[name].values.end(), 0.0f);
  const auto network = std::make_shared<const PolicyNetwork>(shape_, parameters);
  EXPECT_EQ(first_step(*make_learned_policy(test::two_levels(), network), {}).action, 0);
}

TEST_F(LearnedPolicy, SamplesFromTheSoftmaxAtItsTemperature) {
  const auto policy = make_learned_policy(test::two_levels(), network_, 1.3, 42);
  const auto expected = logits(observe(1));
  double sum = 0;
  for (const float logit : expected) sum += std::exp(static_cast<double>(logit) / 1.3);
  constexpr int draws = 20000;
  std::vector<int> counts(8);
  for (int i = 0; i < draws; ++i) {
    const PolicyStep step = first_step(*policy, {.sequence = static_cast<uint64_t>(i / 100),
                                                 .rollout = static_cast<uint32_t>(i % 100)});
    ++counts[static_cast<size_t>(step.action)];
    const double log_prob =
        static_cast<double>(expected[static_cast<size_t>(step.action)]) / 1.3 - std::log(sum);
    ASSERT_NEAR(step.log_prob, log_prob, 1e-5);
  }
  for (size_t a = 0; a < 8; ++a) {
    const double p = std::exp(static_cast<double>(expected[a]) / 1.3) / sum;
    EXPECT_NEAR(counts[a], draws * p, 5 * std::sqrt(draws * p * (1 - p)) + 1) << a;
  }
}

TEST_F(LearnedPolicy, DrawsDependOnSeedSequenceRolloutAndStepOnly) {
  const auto play_sampled = [&](uint64_t seed, std::vector<EpisodeId> ids) {
    const auto policy = make_learned_policy(test::two_levels(), network_, 1.3, seed);
    std::vector<std::unique_ptr<PolicyState>> states;
    for (const EpisodeId& id : ids) states.push_back(policy->begin({}, 16, id));
    std::vector<std::vector<int>> schedules(ids.size());
    for (int t = 1; t <= 16; ++t) {
      std::vector<Observation> seen(ids.size(), observe(t));
      std::vector<PolicyStep> steps;
      for (size_t i = 0; i < ids.size(); ++i) {
        seen[i].previous_action = t == 1 ? -1 : schedules[i].back();
        steps.push_back({states[i].get(), &seen[i]});
      }
      policy->next(steps);
      for (size_t i = 0; i < ids.size(); ++i) schedules[i].push_back(steps[i].action);
    }
    return schedules;
  };
  const EpisodeId a{.sequence = 1, .rollout = 2}, b{.sequence = 1, .rollout = 3},
      c{.sequence = 2, .rollout = 2}, d{.sequence = 1, .episode = 1, .rollout = 2};
  const auto together = play_sampled(9, {a, b, c, d});
  EXPECT_EQ(play_sampled(9, {a})[0], together[0]);
  EXPECT_EQ(play_sampled(9, {d, c})[1], together[2]);
  EXPECT_NE(together[0], together[1]);
  EXPECT_NE(together[0], together[2]);
  EXPECT_NE(together[0], together[3]);
  EXPECT_NE(play_sampled(10, {a})[0], together[0]);
}

TEST_F(LearnedPolicy, EnforcedBudgetsAreMetWhateverTheNetworkSays) {
  const ActionSpace space = test::two_levels();
  for (const double temperature : {0.0, 1.3}) {
    const auto policy = make_learned_policy(space, network_, temperature, 7, false, nullptr,
                                            std::make_shared<const BudgetGuard>(space));
    for (const float share : {0.0f, 0.3f, 0.5f, 0.8f, 1.0f}) {
      const Budget budget{0.1f + 0.9f * share, 0.6f + 0.4f * share, 0.3125f + 0.6875f * share};
      Episode episode(space, budget, {.horizon = 16});
      const auto state = policy->begin(budget, 16, {});
      for (int t = 1; t <= 16; ++t) {
        Observation seen = observe(t);
        seen.features = episode.features(100 + t);
        seen.previous_action = episode.previous_action();
        PolicyStep step{state.get(), &seen};
        policy->next({&step, 1});
        episode.record(step.action, 100 + t);
        EXPECT_TRUE(std::isfinite(step.log_prob));
      }
      EXPECT_NEAR(episode.realised().kappa, budget.kappa, 0.9 / 32 + 1e-5);
      EXPECT_NEAR(episode.realised().rho, budget.rho, 0.4 / 32 + 1e-5);
      EXPECT_NEAR(episode.realised().eta, budget.eta, 0.6875 / 32 + 1e-5);
    }
  }
}

TEST_F(LearnedPolicy, RejectsWhatDoesNotFit) {
  const ActionSpace other({0.1f, 1.0f}, {1.0f}, {16});
  EXPECT_THAT(error_of([&] { make_learned_policy(other, network_); }), HasSubstr("8 actions"));
  EXPECT_THROW(make_learned_policy(test::two_levels(), network_, -1.0), Error);
  EXPECT_THROW(make_learned_policy(test::two_levels(), network_, NAN), Error);
  const auto policy = make_learned_policy(test::two_levels(), network_);
  EXPECT_THAT(error_of([&] { policy->begin({}, 17, {}); }), HasSubstr("17 steps"));
}

}  // namespace
}  // namespace sol
