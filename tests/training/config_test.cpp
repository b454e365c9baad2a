#include "training/config.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <map>

#include "base/file_io.h"
#include "sol/error.h"
#include "support.h"

namespace sol::test {
namespace {

std::filesystem::path config_file(const std::string& name) {
  return source_dir() / "configs" / (name + ".yaml");
}

// The levels of the paper's appendix, κ, ρ and bits, by file.
const std::vector<float> tenths{0.1f, 0.2f, 0.3f, 0.4f, 0.5f, 0.6f, 0.7f, 0.8f, 0.9f, 1.0f},
    twentieths{0.4f, 0.45f, 0.5f, 0.55f, 0.6f, 0.65f, 0.7f, 0.75f, 0.8f, 0.85f, 0.9f, 0.95f, 1.0f},
    off{1.0f}, seven{0.45f, 0.5f, 0.6f, 0.7f, 0.8f, 0.9f, 1.0f}, four{0.1f, 0.4f, 0.7f, 1.0f};
const std::vector<int> bits_5_to_16{5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
const std::map<std::string, ActionSpace> paper_levels{
    {"2l", {{0.1f, 1.0f}, {0.6f, 1.0f}, {5, 16}}},
    {"3l", {{0.1f, 0.6f, 1.0f}, {0.4f, 0.8f, 1.0f}, {5, 7, 16}}},
    {"fl", {tenths, twentieths, bits_5_to_16}},
    {"t4", {four, seven, bits_5_to_16}},
    {"t16", {four, seven, bits_5_to_16}},
    {"t64", {four, seven, bits_5_to_16}},
    {"keep-01", {{0.1f, 1.0f}, off, {16}}},
    {"keep-02", {{0.2f, 1.0f}, off, {16}}},
    {"keep-04", {{0.4f, 1.0f}, off, {16}}},
    {"prune-30", {off, {0.3f, 1.0f}, {16}}},
    {"prune-40", {off, {0.4f, 1.0f}, {16}}},
    {"prune-50", {off, {0.5f, 1.0f}, {16}}},
    {"quant-5-10", {off, off, {5, 10}}},
    {"quant-5-16", {off, off, {5, 16}}},
    {"quant-6-16", {off, off, {6, 16}}},
    {"llama-3.2-3b", {tenths, twentieths, bits_5_to_16}},
    {"llama-3.1-8b-instruct", {tenths, twentieths, bits_5_to_16}},
    {"r1-distill",
     {{0.05f, 0.1f, 0.2f, 0.3f, 0.4f, 0.5f, 0.6f, 0.7f, 0.8f, 0.9f, 1.0f}, off, {16}}}};

struct Expected {
  const char* file;
  int actions, page_size, schedules, horizon, context, batch, grad_accum;
  double kappa_low, rho_low, eta_low, eta_high;
  double alpha_kappa, alpha_rho, alpha_eta;
  int sinks, window, max_length;
};

class PaperConfig : public testing::TestWithParam<Expected> {};

// The paper's appendix "Model configurations", and the published single-axis ones.
TEST_P(PaperConfig, IsAsPublished) {
  const Expected& e = GetParam();
  const TrainingConfig c = load_training_config(config_file(e.file));
  EXPECT_EQ(c.space.size(), e.actions);
  EXPECT_EQ(c.space, paper_levels.at(e.file));
  EXPECT_EQ(c.sequence.page_size, e.page_size);
  EXPECT_EQ(c.schedules, e.schedules);
  EXPECT_EQ(c.horizon, e.horizon);
  EXPECT_EQ(c.context, e.context);
  EXPECT_EQ(c.batch, e.batch);
  EXPECT_EQ(c.grad_accum, e.grad_accum);
  EXPECT_DOUBLE_EQ(c.kappa.range.low, e.kappa_low);
  EXPECT_DOUBLE_EQ(c.kappa.range.high, 1.0);
  EXPECT_DOUBLE_EQ(c.rho.range.low, e.rho_low);
  EXPECT_DOUBLE_EQ(c.rho.range.high, 1.0);
  EXPECT_DOUBLE_EQ(c.eta.range.low, e.eta_low);
  EXPECT_DOUBLE_EQ(c.eta.range.high, e.eta_high);
  EXPECT_DOUBLE_EQ(c.advantage.penalty.kappa, e.alpha_kappa);
  EXPECT_DOUBLE_EQ(c.advantage.penalty.rho, e.alpha_rho);
  EXPECT_DOUBLE_EQ(c.advantage.penalty.eta, e.alpha_eta);
  EXPECT_EQ(c.sequence.sinks, e.sinks);
  EXPECT_EQ(c.sequence.window, e.window);
  EXPECT_EQ(c.policy.max_length, e.max_length);

  EXPECT_DOUBLE_EQ(c.advantage.penalty.tolerance, 0.02);
  EXPECT_DOUBLE_EQ(c.advantage.gamma, 0.85);
  EXPECT_DOUBLE_EQ(c.loss.temperature, 1.3);
  EXPECT_DOUBLE_EQ(c.loss.clip, 0.2);
  EXPECT_DOUBLE_EQ(c.loss.entropy, 0.05);
  EXPECT_DOUBLE_EQ(c.optimiser.learning_rate, 1e-4);
  EXPECT_DOUBLE_EQ(c.optimiser.max_gradient_norm, 2.0);
  EXPECT_EQ(c.minibatch, 512);
  EXPECT_EQ(c.target_steps, 2048);
  EXPECT_EQ(c.updates, 1560);
  EXPECT_EQ(c.seed, 1234u);
  EXPECT_EQ(c.policy.d_model, 512);
  EXPECT_EQ(c.policy.heads, 4);
  EXPECT_EQ(c.policy.layers, 1);
  EXPECT_EQ(c.policy.action_dim, 32);
  EXPECT_TRUE(c.advantage.whiten);
  EXPECT_FALSE(c.advantage.reference);
}

INSTANTIATE_TEST_SUITE_P(
    All, PaperConfig,
    testing::Values(
        Expected{"2l", 8, 4, 16, 16, 1024, 8, 8, 0.1, 0.6, 0.3125, 1.0, 100, 100, 200, 4, 2, 1024},
        Expected{"3l", 27, 4, 16, 16, 1024, 8, 8, 0.1, 0.4, 0.3125, 1.0, 100, 100, 200, 4, 2, 1024},
        Expected{"fl", 1560, 8, 32, 16, 1024, 8, 8, 0.1, 0.4, 0.3125, 1.0, 100, 100, 200, 4, 2,
                 1024},
        Expected{"t4", 336, 8, 32, 4, 1024, 8, 8, 0.1, 0.45, 0.3125, 1.0, 100, 100, 200, 4, 2,
                 1024},
        Expected{"t16", 336, 8, 32, 16, 1024, 8, 8, 0.1, 0.45, 0.3125, 1.0, 100, 100, 200, 4, 2,
                 1024},
        Expected{"t64", 336, 8, 32, 64, 1024, 8, 8, 0.1, 0.45, 0.3125, 1.0, 100, 100, 200, 4, 2,
                 1024},
        Expected{"keep-01", 2, 4, 16, 16, 1024, 8, 8, 0.1, 1.0, 1.0, 1.0, 100, 0, 0, 4, 2, 1024},
        Expected{"keep-02", 2, 4, 16, 16, 1024, 8, 8, 0.2, 1.0, 1.0, 1.0, 100, 0, 0, 4, 2, 1024},
        Expected{"keep-04", 2, 4, 16, 16, 1024, 8, 8, 0.4, 1.0, 1.0, 1.0, 100, 0, 0, 4, 2, 1024},
        Expected{"prune-30", 2, 4, 16, 16, 1024, 8, 8, 1.0, 0.3, 1.0, 1.0, 0, 100, 0, 4, 2, 1024},
        Expected{"prune-40", 2, 4, 16, 16, 1024, 8, 8, 1.0, 0.4, 1.0, 1.0, 0, 100, 0, 4, 2, 1024},
        Expected{"prune-50", 2, 4, 16, 16, 1024, 8, 8, 1.0, 0.5, 1.0, 1.0, 0, 100, 0, 4, 2, 1024},
        Expected{"quant-5-10", 2, 4, 16, 16, 1024, 8, 8, 1.0, 1.0, 0.3125, 0.625, 0, 0, 200, 4, 2,
                 1024},
        Expected{"quant-5-16", 2, 4, 16, 16, 1024, 8, 8, 1.0, 1.0, 0.3125, 1.0, 0, 0, 200, 4, 2,
                 1024},
        Expected{"quant-6-16", 2, 4, 16, 16, 1024, 8, 8, 1.0, 1.0, 0.375, 1.0, 0, 0, 200, 4, 2,
                 1024},
        Expected{"llama-3.2-3b", 1560, 8, 16, 16, 512, 2, 32, 0.1, 0.4, 0.3125, 1.0, 100, 100, 200,
                 4, 2, 512},
        Expected{"llama-3.1-8b-instruct", 1560, 8, 16, 16, 512, 2, 32, 0.1, 0.4, 0.3125, 1.0, 100,
                 100, 200, 4, 2, 512},
        Expected{"r1-distill", 11, 16, 16, 64, 1024, 2, 32, 0.1, 1.0, 1.0, 1.0, 100, 0, 0, 16, 16,
                 512}),
    [](const testing::TestParamInfo<Expected>& tested) {
      std::string name = tested.param.file;
      std::ranges::replace_if(
          name, [](char c) { return c == '-' || c == '.'; }, '_');
      return name;
    });

TEST(Configs, EveryFileLoads) {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(source_dir() / "configs")) {
    if (entry.path().extension() != ".yaml") continue;
    EXPECT_NO_THROW(load_training_config(entry.path())) << entry.path();
    ++count;
  }
  EXPECT_GE(count, 23);
}

TEST(Configs, DefaultModelsLevelsAndBudgets) {
  const TrainingConfig harsh = load_training_config(config_file("default-2l-harsh"));
  EXPECT_EQ(harsh.space, ActionSpace({0.02f, 1.0f}, {0.3f, 1.0f}, {3, 16}));
  EXPECT_DOUBLE_EQ(harsh.kappa.range.low, 0.02);
  EXPECT_DOUBLE_EQ(harsh.rho.range.low, 0.3);
  EXPECT_DOUBLE_EQ(harsh.eta.range.low, 3.0 / 16);
  EXPECT_LE(harsh.policy.d_model, 128);
  const TrainingConfig mild = load_training_config(config_file("default-2l"));
  EXPECT_EQ(mild.space, load_training_config(config_file("2l")).space);
  EXPECT_EQ(load_training_config(config_file("default-demo")).space, harsh.space);
  const TrainingConfig enforced = load_training_config(config_file("default-2l-enforced"));
  EXPECT_EQ(enforced.space, harsh.space);
  EXPECT_EQ(enforced.kappa.range.low, harsh.kappa.range.low);
  EXPECT_EQ(enforced.rho.range.low, harsh.rho.range.low);
  EXPECT_EQ(enforced.eta.range.low, harsh.eta.range.low);
  EXPECT_TRUE(enforced.enforced);
  EXPECT_TRUE(enforced.advantage.spent_baseline);
}

const char* const minimal = R"(
name: test
actions: {keep: [0.5, 1.0], prune: [s100], quant: [q16]}
budgets: {keep: [0.5, 1.0]}
)";

class ConfigText : public testing::Test {
 protected:
  TrainingConfig load(const std::string& text,
                      const std::vector<std::pair<std::string, std::string>>& overrides = {}) {
    write_file_atomically(directory_.path() / "c.yaml", text);
    return load_training_config(directory_.path() / "c.yaml", overrides);
  }
  std::string error(const std::string& text,
                    const std::vector<std::pair<std::string, std::string>>& overrides = {}) {
    try {
      load(text, overrides);
    } catch (const Error& e) {
      return e.what();
    }
    return "";
  }
  TemporaryDirectory directory_;
};

TEST_F(ConfigText, DefaultsAreThePapersSharedConfiguration) {
  const TrainingConfig c = load(minimal);
  EXPECT_EQ(c.schedules, 16);
  EXPECT_EQ(c.rho.range.low, 1.0);  // an axis that is off has its level as its budget
  EXPECT_EQ(c.eta.range.high, 1.0);
  EXPECT_EQ(c.block_length(), 1041);
  EXPECT_EQ(c.minibatch_schedules(), 32);
}

TEST_F(ConfigText, BudgetLists) {
  const TrainingConfig c = load(
      "name: x\nactions: {keep: [0.5, 1.0], prune: [s50, s100], quant: [q16]}\n"
      "budgets: {keep_list: [0.7, 0.6], prune: [0.5, 1.0]}\n");
  EXPECT_EQ(c.kappa.list, (std::vector<double>{0.7, 0.6}));
  EXPECT_DOUBLE_EQ(c.kappa.range.low, 0.6);
  EXPECT_DOUBLE_EQ(c.kappa.range.high, 0.7);
}

TEST_F(ConfigText, OverridesByDottedKey) {
  const TrainingConfig c =
      load(minimal, {{"rollout.batch", "3"}, {"budgets.keep", "[0.6, 0.9]"}, {"seed", "7"}});
  EXPECT_EQ(c.batch, 3);
  EXPECT_DOUBLE_EQ(c.kappa.range.high, 0.9);
  EXPECT_EQ(c.seed, 7u);
  EXPECT_THAT(error(minimal, {{"rollout.bach", "3"}}), testing::HasSubstr("bach"));
  EXPECT_THAT(error(minimal, {{"name.x", "3"}}), testing::HasSubstr("not a section"));
  EXPECT_THAT(error(minimal, {{"rollout.batch", "[3"}}), testing::HasSubstr("not a YAML value"));
}

TEST_F(ConfigText, ErrorsNameTheLineInTheFileWithOverridesToo) {
  using testing::HasSubstr;
  const std::string text = std::string(minimal) +  // 4 lines
                           "\n# a comment\nrollout:\n  horizon: 0\n  batch: 2\n" +
                           "reward: {level: every, gamma: 2}\n";
  using Overrides = std::vector<std::pair<std::string, std::string>>;
  for (const Overrides& overrides :
       {Overrides{}, Overrides{{"seed", "3"}, {"policy.layers", "2"}}}) {
    EXPECT_THAT(error(text, overrides), HasSubstr("c.yaml, line 10: level is"));
    Overrides more = overrides;
    more.emplace_back("reward.level", "process");
    EXPECT_THAT(error(text, more), HasSubstr("c.yaml, line 8: rollout.horizon is 0"));
    more.emplace_back("rollout.horizon", "16");
    EXPECT_THAT(error(text, more), HasSubstr("c.yaml, line 10: reward.gamma is 2"));
    more.emplace_back("reward.gamma", "-1");
    EXPECT_THAT(error(text, more), HasSubstr("c.yaml, override reward.gamma: reward.gamma is -1"));
  }
  EXPECT_THAT(
      error(std::string(minimal) + "reward: {lvel: process}\n"),
      HasSubstr(
          "known here: gamma, level, norm, price_rate, returns, spent_baseline, task_kl, whiten"));
  const std::string actions = "name: x\nactions: {keep: [0.5, 1.0], prune: [s100], quant: [q16]}\n";
  EXPECT_THAT(error(actions + "budgets:\n  keep: [0.6, 1.1]\n"),
              HasSubstr("c.yaml, line 4: budgets.keep is 1.1"));
  EXPECT_THAT(error(actions + "budgets:\n  keep_list: [0.6, 0]\n"),
              HasSubstr("c.yaml, line 4: budgets.keep_list is 0"));
  EXPECT_THAT(error("name: x\nactions: {keep: [2], prune: [s100], quant: [q16]}\nbudgets: {}\n"),
              HasSubstr("c.yaml, line 2: action space"));
}

TEST_F(ConfigText, BudgetsOfAnAxisThatIsOffAreErrors) {
  const std::string text = "name: x\nactions: {keep: [0.5, 1.0], prune: [s70], quant: [q16]}\n";
  EXPECT_THAT(error(text + "budgets:\n  keep: [0.5, 1.0]\n  prune: [0.5, 1.0]\n"),
              testing::HasSubstr("line 5: budgets.prune: this axis is off"));
  EXPECT_THAT(error(text + "budgets:\n  keep: [0.5, 1.0]\n  quant_list: [0.5]\n"),
              testing::HasSubstr("line 5: budgets.quant_list: this axis is off"));
  EXPECT_EQ(error(text + "budgets: {keep: [0.5, 1.0], prune: [0.7, 0.7], quant: [1, 1]}\n"), "");
}

TEST_F(ConfigText, ALearningRateMayNotEndBelowZero) {
  const std::string base = minimal;
  EXPECT_FALSE(load(base).optimiser.final_learning_rate);
  EXPECT_EQ(load(base + "optimisation: {final_learning_rate: 0}\n").optimiser.final_learning_rate,
            0.0);
  EXPECT_THAT(error(base + "optimisation: {final_learning_rate: -1}\n"),
              testing::HasSubstr("optimisation.final_learning_rate is -1"));
}

TEST_F(ConfigText, TheEntropysWeightGoesLinearlyToItsLast) {
  const std::string base = minimal;
  const TrainingConfig constant = load(base);
  EXPECT_EQ(constant.entropy_weight(0), 0.05);
  EXPECT_EQ(constant.entropy_weight(1560), 0.05);
  EXPECT_FALSE(constant.depends_on_length());
  const TrainingConfig falling =
      load(base + "optimisation: {entropy: 0.05, final_entropy: 0.01, updates: 4}\n");
  EXPECT_TRUE(falling.depends_on_length());
  const double expected[] = {0.05, 0.04, 0.03, 0.02, 0.01, 0.01};
  for (int update = 0; update < 6; ++update)
    EXPECT_NEAR(falling.entropy_weight(update), expected[update], 1e-15) << update;
  EXPECT_THAT(error(base + "optimisation: {final_entropy: -0.1}\n"),
              testing::HasSubstr("line 5: optimisation.final_entropy is -0.1"));
}

TEST_F(ConfigText, ACurriculumIsOffUnlessAskedForAndNeedsRanges) {
  using testing::HasSubstr;
  const std::string base = minimal;
  EXPECT_EQ(load(base).curriculum.share, 0.0);
  const TrainingConfig c = load(base + "curriculum: {share: 0.5, width: 0.1}\n");
  EXPECT_EQ(c.curriculum.share, 0.5);
  EXPECT_EQ(c.curriculum.width, 0.1);
  EXPECT_TRUE(c.depends_on_length());
  EXPECT_THAT(error(base + "curriculum: {share: 1.1}\n"), HasSubstr("line 5: curriculum.share"));
  EXPECT_THAT(error(base + "curriculum: {width: 0}\n"), HasSubstr("line 5: curriculum.width"));
  EXPECT_THAT(error(base + "curriculum: {length: 3}\n"), HasSubstr("known here: share, width"));
  const std::string list =
      "name: x\nactions: {keep: [0.5, 1.0], prune: [s100], quant: [q16]}\n"
      "budgets: {keep_list: [0.7, 0.6]}\n";
  EXPECT_EQ(error(list + "curriculum: {share: 0}\n"), "");
  EXPECT_THAT(error(list + "curriculum: {share: 0.5}\n"),
              HasSubstr("line 4: curriculum.share: a curriculum widens ranges"));
}

TEST_F(ConfigText, BudgetsAreEnforcedWhereAskedFor) {
  const std::string base = minimal;
  EXPECT_FALSE(load(base).enforced);
  EXPECT_TRUE(load(base, {{"budgets.enforced", "true"}}).enforced);
  EXPECT_NE(load(base).to_json(), load(base, {{"budgets.enforced", "true"}}).to_json());
  EXPECT_EQ(load(base).budget_guard(), nullptr);
  const auto with_prior = load(base, {{"budgets.enforced", "true"}, {"budgets.prior", "2.5"}});
  EXPECT_EQ(with_prior.prior, 2.5);
  EXPECT_NE(with_prior.budget_guard(), nullptr);
  EXPECT_EQ(with_prior.to_json()["budgets"]["prior"], 2.5);
  EXPECT_THAT(error("name: x\nactions: {keep: [0.5, 1.0], prune: [s30, s100], quant: [q16]}\n"
                    "budgets: {keep: [0.5, 1.0], prune: [0.3, 1.0], prior: 2}\n"),
              testing::HasSubstr("line 3: budgets.prior: it is of enforced budgets"));
  EXPECT_THAT(error("name: x\nactions: {keep: [0.5, 1.0], prune: [s30, s100], quant: [q16]}\n"
                    "budgets: {keep: [0.5, 1.0], prune: [0.3, 1.0], enforced: true, prior: -2}\n"),
              testing::HasSubstr("line 3: budgets.prior is -2; it must be from 0 to 1000"));
  EXPECT_THAT(error("name: x\nactions: {keep: [0.5, 1.0], prune: [s30, s100], quant: [q16]}\n"
                    "budgets: {time: [0.4, 0.9], enforced: true}\n"),
              testing::HasSubstr("line 3: budgets.enforced: a budget of time cannot be enforced"));
}

TEST_F(ConfigText, SpendingIsABaselineWhereItCanBe) {
  using testing::HasSubstr;
  const std::string base = minimal, on = "reward: {spent_baseline: true}\n";
  EXPECT_FALSE(load(base).advantage.spent_baseline);
  EXPECT_TRUE(load(base + on).advantage.spent_baseline);
  EXPECT_THAT(error(base + "reward: {spent_baseline: true, norm: zscore}\n"),
              HasSubstr("line 5: reward.spent_baseline: with reward.norm zscore"));
  EXPECT_THAT(error(base + on + "rollout: {batch: 1, schedules: 12}\n"),
              HasSubstr("(rollout.schedules - 1) is 11"));
  EXPECT_EQ(error(base + on + "rollout: {batch: 1, schedules: 13}\n"), "");
  EXPECT_THAT(error("name: x\nactions: {keep: [0.5, 1.0], prune: [s30, s100], quant: [q16]}\n"
                    "budgets: {time: [0.4, 0.9]}\n" +
                    on),
              HasSubstr("line 4: reward.spent_baseline: what is spent"));
}

TEST_F(ConfigText, SpendingHasAPriceWhereBudgetsAreEnforced) {
  using testing::HasSubstr;
  const std::string base = minimal, on = "reward: {price_rate: 0.05}\n";
  EXPECT_EQ(load(base).price_rate, 0.0);
  EXPECT_FALSE(load(base).to_json()["reward"].contains("price_rate"));
  const TrainingConfig c = load(base + on, {{"budgets.enforced", "true"}});
  EXPECT_EQ(c.price_rate, 0.05);
  EXPECT_EQ(c.to_json()["reward"]["price_rate"], 0.05);
  EXPECT_THAT(error(base + on), HasSubstr("line 5: reward.price_rate: prices move until"));
  EXPECT_THAT(error(base + "reward: {price_rate: -1}\n"),
              HasSubstr("line 5: reward.price_rate is -1"));
}

TEST_F(ConfigText, ThePolicyIsShownTheSurprisalWhereAskedFor) {
  EXPECT_FALSE(load(minimal).network_shape(64).surprisal);
  EXPECT_FALSE(load(minimal).to_json()["policy"].contains("surprisal"));
  const TrainingConfig c = load(minimal, {{"policy.surprisal", "true"}});
  EXPECT_TRUE(c.network_shape(64).surprisal);
  EXPECT_EQ(c.to_json()["policy"]["surprisal"], true);
}

TEST_F(ConfigText, NothingIsDistilledUnlessAskedFor) {
  const std::string base = minimal;
  EXPECT_EQ(load(base).loss.distil, 0.0);
  const TrainingConfig c = load(base + "distil: {weight: 0.2, tolerance: 0.03}\n");
  EXPECT_EQ(c.loss.distil, 0.2);
  EXPECT_EQ(c.distil_tolerance, 0.03);
  EXPECT_FALSE(c.depends_on_length());
  EXPECT_THAT(error(base + "distil: {wait: 1}\n"), testing::HasSubstr("tolerance, weight"));
}

TEST_F(ConfigText, WhatWouldFailLaterFailsHere) {
  using testing::HasSubstr;
  const auto fails = [&](const std::string& key, const std::string& value) {
    EXPECT_THAT(error(minimal, {{key, value}}), HasSubstr("c.yaml, override " + key + ": " + key))
        << value;
  };
  fails("quest.window", "2147483647");
  fails("quest.sinks", "2147483647");
  fails("quest.page_size", "5000");
  fails("rollout.batch", "2147483647");
  fails("rollout.schedules", "2147483647");
  fails("rollout.context", "2147483647");
  fails("rollout.temperature", "1e-40");
  fails("rollout.temperature", "0");
  fails("policy.d_model", "1048576");
  fails("policy.layers", "100000");
  fails("policy.mlp_ratio", "1e300");
  fails("policy.mlp_ratio", "1e-9");
  fails("policy.action_dim", "2147483647");
  fails("policy.max_length", "2147483647");
  fails("optimisation.learning_rate", "1e30");
  fails("optimisation.grad_accum", "2147483647");
  fails("optimisation.target_steps", "2147483647");
  fails("checkpoint.minutes", "1e300");
  fails("penalty.keep", "1e300");
  fails("distil.weight", "-1");
  fails("distil.weight", "1e300");
  fails("distil.tolerance", "0");
  fails("distil.tolerance", "1.5");
  fails("seed", "-1");
  fails("quest.window", "2000");  // every one of 1024 + 16 tokens would be in it, every step dense
  EXPECT_EQ(error(minimal, {{"quest.window", "1034"}}), "");  // of 16 steps the last counts
  EXPECT_THAT(error(minimal, {{"quest.window", "1035"}}), HasSubstr("nothing can be learned"));
  EXPECT_THAT(error(minimal, {{"policy.d_model", "8192"}, {"policy.layers", "256"}}),
              HasSubstr("policy.d_model is 8192"));
  EXPECT_THAT(error(minimal, {{"name", "\"a\xff\""}}), HasSubstr("c.yaml"));
}

TEST_F(ConfigText, ErrorsNameFileAndField) {
  using testing::AllOf;
  using testing::HasSubstr;
  const std::string base = minimal;
  EXPECT_THAT(error(base + "colour: red\n"), AllOf(HasSubstr("c.yaml"), HasSubstr("colour")));
  EXPECT_THAT(error(base + "rollout: {horizon: 0}\n"),
              AllOf(HasSubstr("c.yaml"), HasSubstr("rollout.horizon")));
  EXPECT_THAT(error(base + "rollout: {schedules: 1}\n"), HasSubstr("rollout.schedules"));
  EXPECT_THAT(error(base + "rollout: {batch: many}\n"), HasSubstr("batch"));
  EXPECT_THAT(error(base + "policy: {heads: 3}\n"), HasSubstr("policy.heads"));
  EXPECT_THAT(error(base + "policy: {max_length: 8}\n"), HasSubstr("policy.max_length"));
  EXPECT_THAT(error(base + "reward: {returns: median}\n"), HasSubstr("sum, max, none"));
  EXPECT_THAT(error(base + "reward: {gamma: 1.5}\n"), HasSubstr("reward.gamma"));
  EXPECT_THAT(error(base + "reward: {whiten_over: input}\n"), HasSubstr("batch, group"));
  EXPECT_THAT(error(base + "reward: {whiten: false, whiten_over: group}\n"),
              AllOf(HasSubstr("line 5: reward.whiten_over"), HasSubstr("reward.whiten is false")));
  EXPECT_THAT(error(base + "optimisation: {clip: 1.0}\n"), HasSubstr("optimisation.clip"));
  EXPECT_THAT(error("name: x\nbudgets: {keep: [0.5, 1.0]}\n"), HasSubstr("actions"));
  EXPECT_THAT(
      error("name: x\nactions: {keep: [0.5, 1.0], prune: [s100], quant: [q16]}\nbudgets: {}\n"),
      HasSubstr("budgets"));
  const std::string actions = "name: x\nactions: {keep: [0.5, 1.0], prune: [s100], quant: [q16]}\n";
  EXPECT_THAT(error(actions + "budgets: {keep: [0.9, 0.6]}\n"), HasSubstr("budgets.keep"));
  EXPECT_THAT(error(actions + "budgets: {keep: [0.6, 1.1]}\n"), HasSubstr("budgets.keep"));
  EXPECT_THAT(error(actions + "budgets: {keep: [0.6]}\n"), HasSubstr("budgets.keep"));
  EXPECT_THAT(error(actions + "budgets: {keep: [0.4, 0.8]}\n"),
              HasSubstr("budgets.keep goes from 0.4 to 0.8; no average lies outside the axis' "
                        "levels, from 0.5 to 1"));
  EXPECT_THAT(error("name: x\nactions: {keep: [0.5, 0.8], prune: [s100], quant: [q16]}\n"
                    "budgets: {keep: [0.5, 1.0]}\n"),
              HasSubstr("levels, from 0.5 to 0.8"));
  EXPECT_THAT(error(actions + "budgets: {keep: [0.6, 0.7], keep_list: [0.6]}\n"),
              HasSubstr("keep_list"));
  EXPECT_THAT(error("name: x\nactions: {keep: [0.5, 0.5], prune: [s100], quant: [q16]}\nbudgets: "
                    "{keep: [0.5, 1]}\n"),
              HasSubstr("c.yaml"));
  EXPECT_THAT(error("name: x\nactions: {keep: [1.0], prune: [s100], quant: [q16]}\nbudgets: {}\n"),
              HasSubstr("actions"));
}

TEST_F(ConfigText, JsonHoldsWhatDecidesTheResult) {
  const Json a = load(minimal).to_json();
  EXPECT_EQ(load(minimal, {{"actions.keep", "[0.1, 1.0]"}}).to_json()["actions"]["keep"].dump(),
            "[0.1,1.0]");
  for (const auto& [key, value] :
       std::vector<std::pair<std::string, std::string>>{{"seed", "9"},
                                                        {"rollout.temperature", "1"},
                                                        {"penalty.tolerance", "0"},
                                                        {"quest.page_size", "8"},
                                                        {"policy.d_model", "64"},
                                                        {"budgets.enforced", "true"},
                                                        {"reward.spent_baseline", "true"},
                                                        {"reward.norm", "zscore"},
                                                        {"reward.task_kl", "0.5"},
                                                        {"reward.whiten_over", "group"},
                                                        {"optimisation.entropy", "0"},
                                                        {"budgets.keep", "[0.5, 0.9]"},
                                                        {"optimisation.final_learning_rate", "0"},
                                                        {"optimisation.final_entropy", "0"},
                                                        {"curriculum.share", "0.5"},
                                                        {"distil.weight", "0.1"},
                                                        {"distil.tolerance", "0.1"},
                                                        {"curriculum.width", "0.5"},
                                                        {"data.format", "wikitext"}}) {
    EXPECT_NE(a, load(minimal, {{key, value}}).to_json()) << key;
  }
}

TEST_F(ConfigText, ATimeStandsForTheBudgetsOfTheAxes) {
  const std::string levels =
      "name: x\nactions: {keep: [0.5, 1.0], prune: [s30, s100], quant: [q16]}\n";
  const TrainingConfig c =
      load(levels + "budgets: {time: [0.4, 0.9]}\npenalty: {time: 70, tolerance: 0.01}\n");
  ASSERT_TRUE(c.time);
  EXPECT_EQ(c.time->range.low, 0.4);
  EXPECT_EQ(c.time->range.high, 0.9);
  EXPECT_EQ(c.advantage.penalty.time, 70);
  EXPECT_EQ(c.advantage.penalty.tolerance, 0.01);
  EXPECT_NEAR(c.kappa.range.low, 0.5, 1e-6);  // what the levels allow
  EXPECT_NEAR(c.rho.range.low, 0.3, 1e-6);
  EXPECT_EQ(c.to_json()["budgets"], (Json{{"time", {0.4, 0.9}}}));
  EXPECT_EQ(load(levels + "budgets: {time_list: [0.5, 0.7]}\n").time->list.size(), 2u);
  EXPECT_FALSE(load(minimal).time);
  EXPECT_FALSE(load(minimal).to_json()["penalty"].contains("time"));

  using testing::HasSubstr;
  EXPECT_THAT(error(levels + "budgets:\n  time: [0.4, 1]\n  keep: [0.5, 1]\n"),
              HasSubstr("line 5: budgets.keep and a budget of time exclude each other"));
  EXPECT_THAT(error(levels + "budgets:\n  time: [0.4, 1.5]\n"),
              HasSubstr("line 4: budgets.time is 1.5"));
  EXPECT_THAT(error(levels + "budgets: {time: [0.4, 1]}\npenalty:\n  keep: 5\n"),
              HasSubstr("line 5: penalty.keep: the budget is a time"));
  EXPECT_THAT(error(levels + "budgets: {keep: [0.5, 1], prune: [0.3, 1]}\npenalty:\n  time: 5\n"),
              HasSubstr("line 5: penalty.time needs a budget of time"));
  EXPECT_THAT(error("name: x\nactions:\n  keep: [0.5, 1.0]\n  prune: [s100]\n  quant: [q5, q16]\n"
                    "budgets: {time: [0.4, 1]}\n"),
              HasSubstr("line 5: actions.quant: bits save no time"));
}

}  // namespace
}  // namespace sol::test
