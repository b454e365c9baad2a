#include "training/rollout.h"

#include <cmath>
#include <numeric>

#include "golden_schedules.h"
#include "policy/axis.h"
#include "policy/policies.h"
#include "sol/error.h"
#include "training/initialisation.h"
#include "training/update.h"

namespace sol::test {
namespace {

std::unique_ptr<FrozenModel> tiny_model() {
  return load_model(test_data() / "golden" / "tiny_untied_f32",
                    {.precision = Precision::f32, .deterministic = true});
}

// Plays a schedule for each (input, rollout) and has all observed that is recorded.
std::unique_ptr<Policy> replay(const ActionSpace& space,
                               const std::vector<std::vector<int>>& schedules, size_t group) {
  RecordedSchedules recorded;
  for (size_t n = 0; n < schedules.size(); ++n)
    recorded[{n / group, static_cast<uint32_t>(n % group)}] = schedules[n];
  return make_replay_policy(space, std::move(recorded), {.hidden = true, .embedding = true});
}

struct GoldenRollout {
  TensorStore store = TensorStore::open_file(golden_sol() / "train_step.safetensors");
  ActionSpace space = ActionSpace::from_notation(
      {0.1, 0.4, 0.7, 1.0}, {"s40", "s60", "s80", "s100"}, {"q5", "q7", "q10", "q16"});
  std::vector<std::vector<int32_t>> ids;
  std::vector<RolloutInput> inputs;
  TrainingConfig config;

  GoldenRollout() {
    const auto batch = store.get("rollout.batch").to_ints();
    for (size_t i = 0; i < 2; ++i) {
      ids.emplace_back(batch.begin() + static_cast<std::ptrdiff_t>(57 * i),
                       batch.begin() + static_cast<std::ptrdiff_t>(57 * i + 57));
    }
    for (size_t i = 0; i < 2; ++i) {
      inputs.push_back(
          {.ids = ids[i],
           .position = i,
           .budget = {floats("C_tok_target_BK")[4 * i], floats("C_pru_target_BK")[4 * i],
                      floats("C_qratio_target_BK")[4 * i]}});
    }
    config.space = space;
    config.context = 40;
    config.horizon = 16;
    config.schedules = 4;
    config.batch = 2;
    // As the reference: page 8, neither sinks nor window forced.
    config.sequence = {
        .page_size = 8, .sinks = 4, .window = 2, .force_sinks = false, .cache = Precision::f32};
  }

  std::vector<float> floats(const std::string& name) const {
    return store.get("rollout." + name).to_floats();
  }
};

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2),
                   values.end());
  return values[values.size() / 2];
}

TEST(GoldenRollout, RecordedActionsGiveTheRecordedBatch) {
  const GoldenRollout golden;
  const auto recorded = read_schedules(golden.store,
                                       {"rollout.h_seq", "rollout.e_seq", "rollout.scalars_seq",
                                        "rollout.prev_actions_seq", "rollout.actions_seq"},
                                       golden.space.size());
  std::vector<std::vector<int>> actions;
  for (const Schedule& s : recorded) actions.push_back(s.actions);
  const auto policy = replay(golden.space, actions, 4);
  const auto model = tiny_model();
  std::vector<Schedule> schedules = roll_out(*model, *policy, golden.config, golden.inputs);
  ASSERT_EQ(schedules.size(), 8u);

  std::vector<double> reward_differences, hidden_differences;
  for (size_t n = 0; n < 8; ++n) {
    const Schedule& mine = schedules[n];
    EXPECT_EQ(mine.actions, recorded[n].actions);
    EXPECT_EQ(mine.previous_actions, recorded[n].previous_actions);
    EXPECT_EQ(mine.effective, recorded[n].effective);
    for (size_t t = 0; t < 16; ++t) {
      EXPECT_LE(largest_difference(mine.features[t], recorded[n].features[t]), 1e-6)
          << n << " " << t;
    }
    EXPECT_LE(largest_difference(mine.embedding, recorded[n].embedding), 0.0);
    EXPECT_NEAR(mine.realised.kappa, golden.floats("mean_keep_seq")[n], 1e-6);
    EXPECT_NEAR(mine.realised.rho, golden.floats("mean_prune_seq")[n], 1e-6);
    EXPECT_NEAR(mine.realised.eta, golden.floats("mean_qratio_seq")[n], 1e-6);
    const auto rewards = column(golden.floats("rewards"), 16, n, 8);
    for (size_t t = 0; t < 16; ++t) {
      reward_differences.push_back(std::fabs(mine.rewards[t] - rewards[t]));
      hidden_differences.push_back(
          largest_difference(std::span(mine.hidden).subspan(64 * t, 64),
                             std::span(recorded[n].hidden).subspan(64 * t, 64)));
    }
  }
  // A value on a rounding tie of the quantiser can flip by one quantum
  // (tests/data/golden/README.md).
  EXPECT_LE(*std::max_element(reward_differences.begin(), reward_differences.end()), 6e-3);
  EXPECT_LE(*std::max_element(hidden_differences.begin(), hidden_differences.end()), 2e-2);
  EXPECT_LE(median(reward_differences), 5e-5);
  EXPECT_LE(median(hidden_differences), 5e-5);

  // The rest of the chain on our own rollouts.
  assign_advantages(schedules, 4, {});
  const TorchNetwork network(
      [&] {
        PolicyNetworkShape shape{.hidden_size = 64, .actions = 64, .d_model = 32, .heads = 4};
        shape.max_length = 32;
        return shape;
      }(),
      read_parameters(golden.store, "policy_init."));
  const std::vector<float> log_probs = network.log_probs(pointers(schedules), 1.3);
  for (size_t n = 0; n < 8; ++n) {
    EXPECT_LE(largest_difference(schedules[n].advantages, column(golden.floats("adv"), 16, n, 8)),
              6e-3);
    EXPECT_LE(largest_difference(std::span(log_probs).subspan(16 * n, 16),
                                 column(golden.floats("logp_old_seq"), 16, n, 8)),
              6e-3);
  }
}

struct SmallRollout : GoldenRollout {
  std::unique_ptr<FrozenModel> model = tiny_model();
  PolicyNetworkShape shape{
      .hidden_size = 64, .actions = 64, .d_model = 16, .heads = 4, .max_length = 16};
  std::shared_ptr<const PolicyNetwork> network =
      std::make_shared<PolicyNetwork>(shape, initial_parameters(shape, 1));
  std::unique_ptr<Policy> policy = make_learned_policy(space, network, 1.3, 11);
};

TEST(Rollout, LearnedPolicySamplesAndAgreesWithTheTrainingNetwork) {
  SmallRollout small;
  std::vector<int> told;  // 0 before the dense pass, then each step
  const auto schedules = roll_out(*small.model, *small.policy, small.config, small.inputs, nullptr,
                                  {}, [&](int step) { told.push_back(step); });
  std::vector<int> expected_told(static_cast<size_t>(small.config.horizon) + 1);
  std::iota(expected_told.begin(), expected_told.end(), 0);
  EXPECT_EQ(told, expected_told);
  const TorchNetwork network(small.shape, small.network->parameters());
  const auto log_probs = network.log_probs(pointers(schedules), 1.3);
  int distinct = 0;
  for (size_t n = 0; n < schedules.size(); ++n) {
    EXPECT_LE(largest_difference(std::span(log_probs).subspan(16 * n, 16),
                                 schedules[n].inference_log_probs),
              1e-4);
    EXPECT_EQ(schedules[n].budget, small.inputs[n / 4].budget);
    distinct += schedules[n].actions != schedules[0].actions;
  }
  EXPECT_EQ(distinct, 7);
}

TEST(Rollout, TheSurprisalIsThatOfTheTokenJustRead) {
  SmallRollout small;
  EXPECT_TRUE(
      roll_out(*small.model, *small.policy, small.config, small.inputs)[0].surprisal.empty());
  small.shape.surprisal = true;
  const auto parameters = initial_parameters(small.shape, 1);
  const auto policy = make_learned_policy(
      small.space, std::make_shared<PolicyNetwork>(small.shape, parameters), 1.3, 11);
  const auto schedules = roll_out(*small.model, *policy, small.config, small.inputs);
  const auto context = static_cast<size_t>(small.config.context);
  for (size_t n = 0; n < schedules.size(); ++n) {
    const Schedule& s = schedules[n];
    ASSERT_EQ(s.surprisal.size(), 16u);
    const auto ids = small.inputs[n / 4].ids;
    float first = 0;
    auto sequence = small.model->create(small.config.sequence);
    ExtendItem item{sequence.get(), ids.first(context), {}};
    item.wanted.push_back({context - 1, {.target = ids[context], .log_prob = &first}});
    small.model->extend({&item, 1});
    EXPECT_NEAR(s.surprisal[0], -first, 1e-5) << n;
    for (size_t t = 1; t < 16; ++t)
      EXPECT_EQ(s.surprisal[t], -s.log_likelihood[t - 1]) << n << ' ' << t;
  }
  // Both networks look at it, in the same way.
  const TorchNetwork network(small.shape, parameters);
  const auto log_probs = network.log_probs(pointers(schedules), 1.3);
  for (size_t n = 0; n < schedules.size(); ++n)
    EXPECT_LE(largest_difference(std::span(log_probs).subspan(16 * n, 16),
                                 schedules[n].inference_log_probs),
              1e-4);
  auto other = schedules;
  other[0].surprisal[3] += 1;
  const auto changed = network.log_probs(pointers(other), 1.3);
  EXPECT_EQ(changed[2], log_probs[2]);
  EXPECT_NE(changed[3], log_probs[3]);
}

TEST(Rollout, EnforcedBudgetsAreMetAndBothNetworksAgreeOnWhatIsClosed) {
  for (const double prior : {0.0, 2.0}) {
    SmallRollout small;
    const auto guard = std::make_shared<const BudgetGuard>(small.space, prior);
    const auto policy =
        make_learned_policy(small.space, small.network, 1.3, 11, false, nullptr, guard);
    auto schedules = roll_out(*small.model, *policy, small.config, small.inputs);
    TorchNetwork network(small.shape, small.network->parameters(), false, guard);
    const auto log_probs = network.log_probs(pointers(schedules), 1.3);
    for (size_t n = 0; n < schedules.size(); ++n) {
      EXPECT_LE(largest_difference(std::span(log_probs).subspan(16 * n, 16),
                                   schedules[n].inference_log_probs),
                1e-4);
      for (const Axis axis : all_axes) {
        const auto levels = small.space.levels(axis);
        float widest = 0;
        for (size_t i = 1; i < levels.size(); ++i)
          widest = std::max(widest, levels[i] - levels[i - 1]);
        EXPECT_NEAR(value(schedules[n].realised, axis), value(schedules[n].budget, axis),
                    widest / 32 + 1e-4);
      }
    }
    // Closed actions leave loss and gradients finite.
    assign_advantages(schedules, 4, {});
    assign_old_log_probs(network, schedules, small.config);
    const LossTerms terms = network.accumulate(pointers(schedules), {}, 1.0);
    EXPECT_TRUE(std::isfinite(terms.loss));
    EXPECT_GT(terms.entropy, 0.0);
    for (const std::string& name : network.names())
      for (const float g : network.gradient(name)) ASSERT_TRUE(std::isfinite(g)) << name;
  }
}

TEST(Rollout, AnInputsSchedulesDoNotDependOnItsBatch) {
  SmallRollout small;
  const auto together = roll_out(*small.model, *small.policy, small.config, small.inputs);
  const auto alone = roll_out(*small.model, *small.policy, small.config, {&small.inputs[1], 1});
  for (size_t k = 0; k < 4; ++k) {
    EXPECT_EQ(alone[k].actions, together[4 + k].actions);
    EXPECT_LE(largest_difference(alone[k].rewards, together[4 + k].rewards), 0.0);
  }
}

TEST(Rollout, ShortContextsHaveIneffectiveDenseSteps) {
  SmallRollout small;
  small.config.context = 3;
  small.config.horizon = 8;
  std::vector<RolloutInput> inputs = small.inputs;
  for (RolloutInput& input : inputs) input.ids = input.ids.first(12);
  const auto schedules = roll_out(*small.model, *small.policy, small.config, inputs);
  // More than T_s + T_w + 1 = 7 keys: from the fifth step on (3 + 5 = 8 keys).
  for (const Schedule& s : schedules) {
    EXPECT_EQ(s.effective, (std::vector<uint8_t>{0, 0, 0, 0, 1, 1, 1, 1}));
    for (size_t t = 0; t < 4; ++t) EXPECT_EQ(s.actions[t], small.space.dense_index());
    EXPECT_EQ(s.previous_actions[4], small.space.dense_index());
    EXPECT_EQ(s.inference_log_probs[0], 0.0f);
  }
}

TEST(Rollout, DivergenceFromDenseLowersTheReward) {
  SmallRollout small;
  const std::vector<std::vector<int>> dense(8, std::vector<int>(16, small.space.dense_index()));
  std::vector<std::vector<int>> harsh = dense;
  for (auto& schedule : harsh) schedule[3] = 0;
  small.config.task_kl = 2.0;
  const auto same =
      roll_out(*small.model, *replay(small.space, dense, 4), small.config, small.inputs);
  const auto other =
      roll_out(*small.model, *replay(small.space, harsh, 4), small.config, small.inputs);
  for (size_t n = 0; n < 8; ++n) {
    for (size_t t = 0; t < 16; ++t) {
      EXPECT_NEAR(same[n].rewards[t], same[n].log_likelihood[t],
                  2e-5);  // KL of a distribution to itself
      if (t < 3) {
        EXPECT_NEAR(other[n].rewards[t], same[n].rewards[t], 2e-5);
      }
    }
    EXPECT_LT(other[n].rewards[3], other[n].log_likelihood[3] - 1e-4f);
  }
  // The dense distribution itself is the one that the reference recorded.
  EXPECT_NEAR(same[0].log_likelihood[0],
              small.floats("dense_logprobs")[static_cast<size_t>(small.ids[0][41])], 5e-5);
}

TEST(Rollout, RefusesInputsOfTheWrongLengthAndStops) {
  SmallRollout small;
  std::vector<RolloutInput> inputs = small.inputs;
  inputs[1].ids = inputs[1].ids.first(56);
  EXPECT_THROW(roll_out(*small.model, *small.policy, small.config, inputs), Error);
  std::stop_source stop;
  stop.request_stop();
  EXPECT_THROW(
      roll_out(*small.model, *small.policy, small.config, small.inputs, nullptr, stop.get_token()),
      Cancelled);
}

TEST(Rollout, BudgetsAreDrawnWithinTheirRanges) {
  TrainingConfig config;
  config.space = ActionSpace({0.1f, 1.0f}, {0.6f, 1.0f}, {16});
  config.kappa.range = {0.1, 1.0};
  config.rho.list = {0.7, 0.9};
  config.eta.range = {0.3, 0.5};  // off: its only level counts
  double sum = 0;
  int sevens = 0;
  for (uint64_t i = 0; i < 2000; ++i) {
    const Budget b = draw_budget(config, i);
    EXPECT_GE(b.kappa, 0.1f);
    EXPECT_LE(b.kappa, 1.0f);
    EXPECT_TRUE(b.rho == 0.7f || b.rho == 0.9f);
    EXPECT_EQ(b.eta, 1.0f);
    sum += b.kappa;
    sevens += b.rho == 0.7f;
  }
  EXPECT_NEAR(sum / 2000, 0.55, 0.02);
  EXPECT_NEAR(sevens, 1000, 100);
  const Budget fifth = draw_budget(config, 5);
  EXPECT_EQ(draw_budget(config, 5), fifth);
  config.seed = 2;
  EXPECT_NE(draw_budget(config, 5).kappa, fifth.kappa);
}

}  // namespace
}  // namespace sol::test
