#include "training/update.h"

#include <cmath>

#include "base/random.h"
#include "golden_schedules.h"
#include "sol/error.h"
#include "training/data_order.h"
#include "training/initialisation.h"

namespace sol::test {
namespace {

// Gradients are differences of sums over 128 steps; weights move by at most the learning rate, and
// Adam divides by the gradient's own size, so that a relative error of a tiny gradient shows up
// there.
constexpr double gradient_tolerance = 5e-6;
constexpr double weight_tolerance = 5e-6;

PolicyNetworkShape shape_from(const Parameters& parameters) {
  PolicyNetworkShape shape;
  shape.d_model = static_cast<int>(parameters.at("pos_emb.weight").shape[1]);
  shape.max_length = static_cast<int>(parameters.at("pos_emb.weight").shape[0]);
  shape.actions = static_cast<int>(parameters.at("pi.weight").shape[0]);
  shape.action_dim = static_cast<int>(parameters.at("action_emb.weight").shape[1]);
  shape.hidden_size =
      static_cast<int>(parameters.at("obs_proj.weight").shape[1] - 64 - shape.action_dim) / 2;
  return shape;
}

void expect_gradients(TorchNetwork& network, const TensorStore& store, const std::string& prefix) {
  for (const std::string& name : network.names()) {
    EXPECT_LE(largest_difference(network.gradient(name), store.get(prefix + name).to_floats()),
              gradient_tolerance)
        << name;
  }
}

// Where a gradient is nothing but rounding error, Adam's first steps have an arbitrary sign: such
// weights may differ by up to twice the learning rate a step.
void expect_weights(TorchNetwork& network, const TensorStore& store, const std::string& prefix,
                    const std::string& gradient_prefix, double learning_rate, int steps) {
  for (const std::string& name : network.names()) {
    const auto expected = store.get(prefix + name).to_floats();
    const auto gradient = store.get(gradient_prefix + name).to_floats();
    const auto values = network.values(name);
    for (size_t i = 0; i < values.size(); ++i) {
      const bool noise = gradient[i] != 0.0f && std::fabs(gradient[i]) < 1e-6f;
      EXPECT_NEAR(values[i], expected[i], noise ? 2.1 * learning_rate * steps : weight_tolerance)
          << name << "[" << i << "], gradient " << gradient[i];
    }
  }
}

TEST(GoldenUpdate, TwoStepsOnOneMinibatch) {
  const Json description = read_json(golden_sol() / "grpo.json");
  const TensorStore store = TensorStore::open_file(golden_sol() / "grpo.safetensors");
  const Parameters parameters = read_parameters(store, "param.");
  PolicyNetworkShape shape = shape_from(parameters);
  TorchNetwork network(shape, parameters);
  AdamW optimiser(network, {});
  std::vector<Schedule> schedules = read_schedules(store, {}, shape.actions);
  const auto old_log_probs = store.get("logp_old").to_floats(),
             advantages = store.get("a0.adv").to_floats();
  for (size_t n = 0; n < schedules.size(); ++n) {
    schedules[n].old_log_probs = column(old_log_probs, 16, n, 8);
    schedules[n].advantages = column(advantages, 16, n, 8);
  }
  for (int step = 0; step < 2; ++step) {
    const std::string prefix = "s" + std::to_string(step) + ".";
    const Json& expected = description.at("ppo").at(static_cast<size_t>(step));
    const std::vector<float> log_probs = network.log_probs(pointers(schedules), 1.3);
    const auto golden_log_probs = store.get(prefix + "logp_new").to_floats();
    for (size_t n = 0; n < schedules.size(); ++n) {
      EXPECT_LE(largest_difference(std::span(log_probs).subspan(n * 16, 16),
                                   column(golden_log_probs, 16, n, 8)),
                5e-5);
    }
    const LossTerms terms = network.accumulate(pointers(schedules), {}, 1.0);
    EXPECT_NEAR(terms.policy_loss, expected.at("policy_loss").get<double>(), 1e-6);
    EXPECT_NEAR(terms.entropy, expected.at("entropy").get<double>(), 1e-5);
    EXPECT_NEAR(terms.loss, expected.at("loss").get<double>(), 1e-6);
    EXPECT_NEAR(terms.clip_fraction, expected.at("clip_frac").get<double>(), 1e-6);
    EXPECT_EQ(terms.steps, 128);
    expect_gradients(network, store, prefix + "grad.");
    EXPECT_NEAR(optimiser.step(network), expected.at("grad_norm_before_clip").get<double>(), 1e-5);
    expect_weights(network, store, prefix + "after.", prefix + "grad.", 1e-4, step + 1);
  }
  EXPECT_EQ(optimiser.steps(), 2);
}

TEST(GoldenUpdate, TwoAccumulatedMinibatchesOfARecordedBatch) {
  const TensorStore store = TensorStore::open_file(golden_sol() / "train_step.safetensors");
  const Parameters parameters = read_parameters(store, "policy_init.");
  const PolicyNetworkShape shape = shape_from(parameters);
  TorchNetwork network(shape, parameters);
  AdamW optimiser(network, {});
  const RecordingNames names{"rollout.h_seq", "rollout.e_seq", "rollout.scalars_seq",
                             "rollout.prev_actions_seq", "rollout.actions_seq"};
  std::vector<Schedule> schedules = read_schedules(store, names, shape.actions);
  const auto old_log_probs = store.get("rollout.logp_old_seq").to_floats();
  const auto rewards = store.get("rollout.rewards").to_floats();
  const auto read = [&](const std::string& name) {
    return store.get("rollout." + name).to_floats();
  };
  for (size_t n = 0; n < schedules.size(); ++n) {
    schedules[n].rewards = column(rewards, 16, n, 8);
    schedules[n].budget = {read("C_tok_target_BK")[n], read("C_pru_target_BK")[n],
                           read("C_qratio_target_BK")[n]};
    schedules[n].realised = {read("mean_keep_seq")[n], read("mean_prune_seq")[n],
                             read("mean_qratio_seq")[n]};
    schedules[n].inference_log_probs = column(old_log_probs, 16, n, 8);
  }
  assign_advantages(schedules, 4, {});
  TrainingConfig config;
  config.horizon = 16;
  config.minibatch = 64;
  EXPECT_LE(assign_old_log_probs(network, schedules, config), 5e-5);
  for (size_t n = 0; n < schedules.size(); ++n) {
    EXPECT_LE(largest_difference(schedules[n].returns, column(read("x_for_adv"), 16, n, 8)), 5e-5);
    EXPECT_NEAR(schedules[n].penalty, column(read("computational_component"), 16, n, 8)[0], 1e-5);
    EXPECT_LE(largest_difference(schedules[n].advantages, column(read("adv"), 16, n, 8)), 5e-5);
  }
  for (const std::string prefix : {"mb0.", "mb1."}) {
    std::vector<const Schedule*> minibatch;
    for (int64_t i : store.get(prefix + "idx").to_ints())
      minibatch.push_back(&schedules[static_cast<size_t>(i)]);
    const LossTerms terms = network.accumulate(minibatch, {}, 2.0);
    EXPECT_NEAR(terms.policy_loss, store.get(prefix + "policy_loss").to_floats()[0], 5e-6);
    EXPECT_NEAR(terms.entropy, store.get(prefix + "entropy").to_floats()[0], 1e-5);
    EXPECT_NEAR(terms.loss, store.get(prefix + "loss").to_floats()[0], 5e-6);
    expect_gradients(network, store, prefix + "accumgrad.");
  }
  optimiser.step(network);
  expect_weights(network, store, "policy_after.", "mb1.accumgrad.", 1e-4, 1);
}

// Random schedules for a small network.
std::vector<Schedule> random_schedules(int count, int steps, const PolicyNetworkShape& shape) {
  std::vector<Schedule> out(static_cast<size_t>(count));
  for (size_t n = 0; n < out.size(); ++n) {
    Random random({.seed = 1, .stream = RandomStream::test, .block = n});
    Schedule& s = out[n];
    for (int i = 0; i < steps * shape.hidden_size; ++i) {
      s.hidden.push_back(static_cast<float>(random.normal()));
      s.embedding.push_back(static_cast<float>(random.normal()));
    }
    for (int t = 0; t < steps; ++t) {
      s.features.push_back({});
      s.previous_actions.push_back(t == 0 ? -1 : s.actions.back());
      s.actions.push_back(static_cast<int>(random.below(static_cast<uint32_t>(shape.actions))));
      s.effective.push_back(1);
      s.advantages.push_back(static_cast<float>(random.normal()));
      s.old_log_probs.push_back(-1.0f);
    }
  }
  return out;
}

struct SmallRun {
  PolicyNetworkShape shape{
      .hidden_size = 8, .actions = 4, .d_model = 8, .heads = 2, .max_length = 4};
  std::vector<Schedule> schedules = random_schedules(10, 4, shape);
  TorchNetwork network{shape, initial_parameters(shape, 3)};
  AdamW optimiser{network, {}};
  TrainingConfig config;
  UpdateCounters counters;

  SmallRun() {
    config.horizon = 4;
    config.minibatch = 16;  // four schedules: minibatches of 4, 4 and 2
    config.grad_accum = 2;
    config.updates = 100;
  }
};

TEST(Update, MinibatchesRunOnAcrossCollections) {
  SmallRun run;
  const UpdateSummary first =
      update_policy(run.network, run.optimiser, run.schedules, run.config, 0, run.counters);
  EXPECT_EQ(run.counters.updates, 1);
  EXPECT_EQ(run.counters.minibatches, 1);
  EXPECT_EQ(first.mean.steps, 40);
  update_policy(run.network, run.optimiser, run.schedules, run.config, 1, run.counters);
  EXPECT_EQ(run.counters.updates, 3);
  EXPECT_EQ(run.counters.minibatches, 0);
  EXPECT_EQ(run.optimiser.steps(), 3);
}

TEST(Update, EndsAtTheRequestedNumberOfUpdates) {
  SmallRun run;
  run.config.grad_accum = 1;
  run.config.updates = 2;
  update_policy(run.network, run.optimiser, run.schedules, run.config, 0, run.counters);
  EXPECT_EQ(run.counters.updates, 2);
}

TEST(Update, TheEntropysWeightIsThatOfTheStepsMade) {
  SmallRun falling, constant;
  falling.config.grad_accum = constant.config.grad_accum = 1;
  falling.config.updates = 3;  // all of the collection's minibatches
  falling.config.loss.entropy = 0.3;
  falling.config.final_entropy = 0.0;
  const UpdateSummary summary = update_policy(falling.network, falling.optimiser, falling.schedules,
                                              falling.config, 0, falling.counters);
  EXPECT_NEAR(summary.entropy_weight, 0.1, 1e-12);
  // The same minibatches, one by one, with 0.3, 0.2 and 0.1.
  const auto order = shuffled(10, constant.config.seed, RandomStream::shuffle, 0);
  for (size_t i = 0; i < 3; ++i) {
    std::vector<const Schedule*> minibatch;
    for (size_t j = 4 * i; j < std::min<size_t>(4 * i + 4, 10); ++j)
      minibatch.push_back(&constant.schedules[static_cast<size_t>(order[j])]);
    LossOptions loss = constant.config.loss;
    loss.entropy = falling.config.entropy_weight(static_cast<int64_t>(i));
    constant.network.accumulate(minibatch, loss, 1.0);
    constant.optimiser.step(constant.network);
  }
  for (const std::string& name : falling.network.names())
    EXPECT_EQ(largest_difference(falling.network.values(name), constant.network.values(name)), 0.0)
        << name;
}

TEST(Update, IneffectiveStepsHaveNoGradient) {
  SmallRun run;
  for (Schedule& s : run.schedules) s.effective.assign(4, 0);
  const LossTerms terms = run.network.accumulate(pointers(run.schedules), {}, 1.0);
  EXPECT_EQ(terms.steps, 0);
  for (const std::string& name : run.network.names()) {
    for (float g : run.network.gradient(name)) ASSERT_EQ(g, 0.0f) << name;
  }
  // One effective step: what the others hold must not matter.
  run.schedules[0].effective[2] = 1;
  const double loss = run.network.accumulate(pointers(run.schedules), {}, 1.0).loss;
  run.schedules[1].advantages[0] = 1e6f;
  run.schedules[1].old_log_probs[0] = -1e6f;
  EXPECT_EQ(run.network.accumulate(pointers(run.schedules), {}, 1.0).loss, loss);
}

TEST(Update, DisagreeingNetworksAreAnError) {
  SmallRun run;
  const auto log_probs =
      run.network.log_probs(pointers(run.schedules), run.config.loss.temperature);
  for (size_t n = 0; n < run.schedules.size(); ++n) {
    run.schedules[n].inference_log_probs.assign(
        log_probs.begin() + static_cast<std::ptrdiff_t>(4 * n),
        log_probs.begin() + static_cast<std::ptrdiff_t>(4 * n + 4));
  }
  EXPECT_LE(assign_old_log_probs(run.network, run.schedules, run.config), 1e-6);
  run.schedules[7].inference_log_probs[2] += 1e-3f;
  EXPECT_THROW(assign_old_log_probs(run.network, run.schedules, run.config), Error);
  run.schedules[7].inference_log_probs[2] = NAN;
  EXPECT_THROW(assign_old_log_probs(run.network, run.schedules, run.config), Error);
}

TEST(AdamW, RefusesGradientsThatAreNotFinite) {
  SmallRun run;
  const std::vector<float> before = run.network.parameters().at("pi.weight").values;
  run.network.gradient("pi.weight")[0] = INFINITY;
  EXPECT_THROW(run.optimiser.step(run.network), Error);
  EXPECT_EQ(run.network.parameters().at("pi.weight").values, before);
  EXPECT_EQ(run.optimiser.steps(), 0);
}

TEST(AdamW, DecaysItsLearningRateLinearly) {
  SmallRun run;
  AdamWOptions options;
  EXPECT_DOUBLE_EQ(AdamW(run.network, options).learning_rate(), 1e-4);
  options.final_learning_rate = 2e-5;
  options.decay_steps = 4;
  AdamW optimiser(run.network, options);
  for (const double rate : {1e-4, 8e-5, 6e-5, 4e-5, 2e-5, 2e-5}) {
    EXPECT_NEAR(optimiser.learning_rate(), rate, 1e-12);
    optimiser.step(run.network);
  }
}

TEST(AdamW, ClipsTheNorm) {
  SmallRun run;
  AdamW clipped(run.network, {});  // at 2
  run.network.gradient("pi.weight")[0] = 3.0f;
  run.network.gradient("pi.weight")[1] = 4.0f;
  EXPECT_DOUBLE_EQ(clipped.step(run.network), 5.0);
  EXPECT_NEAR(clipped.moments().at("pi.weight").first[0], 0.1 * 3.0 * 2.0 / 5.0, 1e-6);
  EXPECT_EQ(run.network.gradient("pi.weight")[0], 0.0f);
}

}  // namespace
}  // namespace sol::test
