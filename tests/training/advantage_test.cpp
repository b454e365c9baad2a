#include "training/advantage.h"

#include <cmath>

#include "golden_schedules.h"
#include "sol/error.h"

namespace sol::test {
namespace {

struct GoldenBatch {
  Json description = read_json(golden_sol() / "grpo.json");
  TensorStore store = TensorStore::open_file(golden_sol() / "grpo.safetensors");
  size_t steps = 16, count = 8;
  int group = 4;

  std::vector<float> column_of(const std::string& name, size_t n) const {
    return column(store.get(name).to_floats(), steps, n, count);
  }
};

AdvantageOptions options_of(const Json& c) {
  AdvantageOptions options;
  options.reference = true;
  options.gamma = c.at("gamma").get<double>();
  const Json& returns = c.at("reward_agg");
  options.returns = returns.is_null()  ? AdvantageOptions::Returns::none
                    : returns == "max" ? AdvantageOptions::Returns::max
                                       : AdvantageOptions::Returns::sum;
  if (c.at("level") == "outcome") options.level = AdvantageOptions::Level::outcome;
  if (c.at("norm") == "zscore") options.norm = AdvantageOptions::Norm::zscore;
  options.whiten = c.at("whiten").get<bool>();
  options.penalty = {c.at("alphas")[0].get<double>(), c.at("alphas")[1].get<double>(),
                     c.at("alphas")[2].get<double>(), c.at("tolerance").get<double>()};
  return options;
}

// Mean of one axis over the effective steps, as recorded.
float mean_over(const std::vector<float>& values, const std::vector<float>& effective) {
  float sum = 0, n = 0;
  for (size_t t = 0; t < values.size(); ++t) {
    sum += values[t] * effective[t];
    n += effective[t];
  }
  return sum / n;
}

class GoldenAdvantage : public testing::TestWithParam<int> {};

TEST_P(GoldenAdvantage, EqualsTheReference) {
  const GoldenBatch golden;
  const Json c = golden.description.at("adv_cases").at(static_cast<size_t>(GetParam()));
  const std::string id = "a" + std::to_string(GetParam()) + ".";
  std::vector<Schedule> schedules(golden.count);
  for (size_t n = 0; n < golden.count; ++n) {
    Schedule& s = schedules[n];
    const auto effective = golden.column_of("eff." + c.at("eff").get<std::string>(), n);
    s.rewards = golden.column_of("r_task", n);
    for (float e : effective) s.effective.push_back(e > 0 ? 1 : 0);
    s.budget = {golden.store.get("C_tok").to_floats()[n], golden.store.get("C_pru").to_floats()[n],
                golden.store.get("C_q").to_floats()[n]};
    s.realised = {mean_over(golden.column_of("keep", n), effective),
                  mean_over(golden.column_of("prune", n), effective),
                  mean_over(golden.column_of("qratio", n), effective)};
    EXPECT_NEAR(s.realised.kappa, golden.store.get(id + "mean_keep_seq").to_floats()[n], 1e-6);
    EXPECT_NEAR(s.realised.rho, golden.store.get(id + "mean_prune_seq").to_floats()[n], 1e-6);
    EXPECT_NEAR(s.realised.eta, golden.store.get(id + "mean_qratio_seq").to_floats()[n], 1e-6);
  }
  assign_advantages(schedules, golden.group, options_of(c));
  for (size_t n = 0; n < golden.count; ++n) {
    const Schedule& s = schedules[n];
    EXPECT_LE(largest_difference(s.returns, golden.column_of(id + "x_for_adv", n)), 1e-5);
    EXPECT_NEAR(s.penalty, golden.column_of(id + "computational_component", n)[0], 5e-5);
    EXPECT_LE(largest_difference(s.advantages, golden.column_of(id + "adv", n)), 5e-5);
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, GoldenAdvantage, testing::Range(0, 16));

Schedule with_rewards(std::vector<float> rewards) {
  Schedule s;
  s.effective.assign(rewards.size(), 1);
  s.rewards = std::move(rewards);
  return s;
}

TEST(Advantage, ReturnsByHand) {
  const std::vector<float> rewards{-1, -2, -4};
  AdvantageOptions options;
  options.gamma = 0.5;
  EXPECT_EQ(returns_to_go(rewards, options), (std::vector<float>{-3, -4, -4}));
  options.gamma = 1.0;  // the plain sum, unlike the authors' code
  EXPECT_EQ(returns_to_go(rewards, options), (std::vector<float>{-7, -6, -4}));
  options.reference = true;
  EXPECT_EQ(returns_to_go(rewards, options), rewards);
  options.gamma = 0.5;
  options.returns = AdvantageOptions::Returns::max;
  EXPECT_EQ(returns_to_go(rewards, options), (std::vector<float>{-1, -2, -4}));
  options.gamma = 0.0;
  options.returns = AdvantageOptions::Returns::sum;
  EXPECT_EQ(returns_to_go(rewards, options), rewards);
  EXPECT_TRUE(returns_to_go({}, options).empty());
}

TEST(Advantage, PenaltyHasAToleranceBandAndGrowsOnBothSides) {
  const PenaltyOptions options{.kappa = 100, .rho = 10, .eta = 1, .tolerance = 0.02};
  const Budget target{0.5f, 0.5f, 0.5f};
  EXPECT_EQ(budget_penalty({0.515f, 0.485f, 0.5f}, target, options), 0.0f);
  EXPECT_NEAR(budget_penalty({0.62f, 0.5f, 0.5f}, target, options), 100 * 0.01, 1e-5);
  EXPECT_NEAR(budget_penalty({0.38f, 0.5f, 0.5f}, target, options), 100 * 0.01, 1e-5);
  EXPECT_NEAR(budget_penalty({0.5f, 0.62f, 0.38f}, target, options), 10 * 0.01 + 0.01, 1e-5);
}

TEST(Advantage, IneffectiveStepsStayOutOfWhitening) {
  // The first step is far from the others in value but does not count.
  std::vector<Schedule> schedules{with_rewards({100, 1}), with_rewards({-100, -1})};
  for (Schedule& s : schedules) s.effective[0] = 0;
  AdvantageOptions options;
  options.returns = AdvantageOptions::Returns::none;
  EXPECT_DOUBLE_EQ(assign_advantages(schedules, 2, options), 1.0);
  EXPECT_FLOAT_EQ(schedules[0].advantages[1], 1.0f);
  EXPECT_FLOAT_EQ(schedules[1].advantages[1], -1.0f);
  options.reference = true;
  EXPECT_GT(assign_advantages(schedules, 2, options), 50.0);
}

TEST(Advantage, EqualSchedulesGiveZeroNotInfinity) {
  std::vector<Schedule> schedules(4, with_rewards({-1, -2}));
  for (const auto norm : {AdvantageOptions::Norm::center, AdvantageOptions::Norm::zscore}) {
    AdvantageOptions options;
    options.norm = norm;
    assign_advantages(schedules, 2, options);
    for (const Schedule& s : schedules) EXPECT_EQ(s.advantages, (std::vector<float>{0, 0}));
  }
}

// Two inputs of two schedules and two steps; centred: (3, 1), (-3, -1) and (.3, 0), (-.3, 0).
std::vector<Schedule> strong_and_weak() {
  return {with_rewards({-1, -2}), with_rewards({-7, -4}), with_rewards({-1, -5}),
          with_rewards({-1.6f, -5})};
}

void expect_advantages(const std::vector<Schedule>& schedules,
                       const std::vector<std::vector<double>>& expected) {
  for (size_t n = 0; n < expected.size(); ++n)
    for (size_t t = 0; t < expected[n].size(); ++t)
      EXPECT_NEAR(schedules[n].advantages[t], expected[n][t], 1e-5) << n << " " << t;
}

TEST(Advantage, WhiteningOverAGroupIsNeitherThatOverTheBatchNorTheZScore) {
  AdvantageOptions options;
  options.returns = AdvantageOptions::Returns::none;
  std::vector<Schedule> schedules = strong_and_weak();
  // Mean square of the batch's eight values: (2 (9 + 1) + 2 * .09) / 8.
  const double batch = std::sqrt(20.18 / 8);
  EXPECT_NEAR(assign_advantages(schedules, 2, options), batch, 1e-6);
  expect_advantages(
      schedules,
      {{3 / batch, 1 / batch}, {-3 / batch, -1 / batch}, {0.3 / batch, 0}, {-0.3 / batch, 0}});
  // Of each group's four: (2 (9 + 1)) / 4 and (2 * .09) / 4. The strong group's steps stay as 3
  // to 1.
  options.whiten_over = AdvantageOptions::WhitenOver::group;
  schedules = strong_and_weak();
  EXPECT_NEAR(assign_advantages(schedules, 2, options), batch, 1e-6);
  const double strong = std::sqrt(5.0), weak = std::sqrt(0.045);
  expect_advantages(
      schedules,
      {{3 / strong, 1 / strong}, {-3 / strong, -1 / strong}, {0.3 / weak, 0}, {-0.3 / weak, 0}});
  // The z-score makes 1 to 1 of them.
  options.norm = AdvantageOptions::Norm::zscore;
  options.whiten = false;
  schedules = strong_and_weak();
  assign_advantages(schedules, 2, options);
  expect_advantages(schedules, {{1, 1}, {-1, -1}, {1, 0}, {-1, 0}});
}

TEST(Advantage, AGroupIsWhitenedByItsEffectiveSteps) {
  std::vector<Schedule> schedules{with_rewards({100, 3}), with_rewards({-100, -3}),
                                  with_rewards({0, 5}), with_rewards({0, 4})};
  for (Schedule& s : schedules) s.effective[0] = 0;
  AdvantageOptions options;
  options.returns = AdvantageOptions::Returns::none;
  options.whiten_over = AdvantageOptions::WhitenOver::group;
  assign_advantages(schedules, 2, options);
  for (size_t n = 0; n < 4; ++n) EXPECT_FLOAT_EQ(schedules[n].advantages[1], n % 2 ? -1.0f : 1.0f);
  options.reference = true;
  assign_advantages(schedules, 2, options);
  EXPECT_LT(schedules[0].advantages[1], 0.1f);
}

TEST(Advantage, AGroupsRoundingErrorsAreNotBlownUp) {
  std::vector<Schedule> schedules{with_rewards({-1}), with_rewards({-1}),
                                  with_rewards({-2}), with_rewards({-2.00001f}),
                                  with_rewards({-3}), with_rewards({-3.1f})};
  AdvantageOptions options;
  options.whiten_over = AdvantageOptions::WhitenOver::group;
  assign_advantages(schedules, 2, options);
  EXPECT_EQ(schedules[0].advantages[0], 0.0f);
  EXPECT_EQ(schedules[1].advantages[0], 0.0f);
  EXPECT_NEAR(schedules[2].advantages[0], 0.005, 2e-4);  // half of 1e-5 over the floor of 1e-3
  EXPECT_NEAR(schedules[4].advantages[0], 1.0, 1e-6);
}

TEST(Advantage, WhiteningOverAGroupDoesNotDependOnTheBatch) {
  AdvantageOptions options;
  options.whiten_over = AdvantageOptions::WhitenOver::group;
  std::vector<Schedule> together = strong_and_weak(), all = strong_and_weak();
  assign_advantages(together, 2, options);
  std::vector<Schedule> alone(all.begin() + 2, all.end());
  assign_advantages(alone, 2, options);
  for (size_t k = 0; k < 2; ++k) EXPECT_EQ(alone[k].advantages, together[2 + k].advantages);
}

TEST(Advantage, SpendingOfEarlierStepsExplainsPartOfAReturn) {
  const ActionSpace space({0.1f, 1.0f}, {0.5f, 1.0f}, {16});
  const std::vector<std::vector<int>> actions{{0, 0, 3}, {1, 3, 3}, {2, 1, 0}, {3, 2, 0}};
  const std::vector<float> own{0.25f, -0.5f, 0.125f, 0.125f};
  std::vector<Schedule> schedules;
  for (size_t k = 0; k < actions.size(); ++k) {
    Schedule s = with_rewards({0, 0, 0});
    s.actions = actions[k];
    float kappa = 0, rho = 0;
    for (size_t t = 0; t < 2; ++t) {
      kappa += space.action(s.actions[t]).kappa;
      rho += space.action(s.actions[t]).rho;
    }
    s.rewards[2] = -3 * kappa + 2 * rho;
    schedules.push_back(s);
  }
  AdvantageOptions options;
  options.gamma = 1.0;
  options.whiten = false;
  options.spent_baseline = true;
  assign_advantages(schedules, 4, options, &space);
  for (const Schedule& s : schedules) EXPECT_NEAR(s.advantages[2], 0.0, 1e-4);
  // Nothing was spent before the first step: there only the mean goes.
  std::vector<Schedule> plain = schedules;
  options.spent_baseline = false;
  assign_advantages(plain, 4, options);
  for (size_t k = 0; k < 4; ++k) EXPECT_EQ(schedules[k].advantages[0], plain[k].advantages[0]);
  EXPECT_GT(std::abs(plain[0].advantages[2]), 0.1f);
  // What it does not explain stays.
  for (size_t k = 0; k < 4; ++k) schedules[k].rewards[2] += own[k];
  options.spent_baseline = true;
  assign_advantages(schedules, 4, options, &space);
  double left = 0;
  for (const Schedule& s : schedules) left += std::abs(static_cast<double>(s.advantages[2]));
  EXPECT_GT(left, 0.1);
  EXPECT_THROW(assign_advantages(schedules, 4, options), Error);
}

TEST(Advantage, RefusesIncompleteGroupsAndMixedLengths) {
  std::vector<Schedule> three(3, with_rewards({-1}));
  EXPECT_THROW(assign_advantages(three, 2, {}), Error);
  EXPECT_THROW(assign_advantages(three, 0, {}), Error);
  std::vector<Schedule> mixed{with_rewards({-1}), with_rewards({-1, -2})};
  EXPECT_THROW(assign_advantages(mixed, 2, {}), Error);
}

TEST(Advantages, OfATimeArePenalisedByItAlone) {
  PenaltyOptions options;
  options.time = 50;
  options.tolerance = 0.02;
  EXPECT_FLOAT_EQ(time_penalty(0.7f, 0.7f, options), 0);
  EXPECT_FLOAT_EQ(time_penalty(0.715f, 0.7f, options), 0);
  EXPECT_NEAR(time_penalty(0.82f, 0.7f, options), 50 * 0.1 * 0.1, 1e-5);
  EXPECT_NEAR(time_penalty(0.58f, 0.7f, options), 50 * 0.1 * 0.1, 1e-5);

  Schedule schedule;
  schedule.rewards = {-1, -1};
  schedule.effective = {1, 1};
  schedule.budget = time_budget(0.7f);
  schedule.realised = {0.1f, 0.1f, 1.0f};  // far from 0.7 on either axis
  schedule.realised_time = 0.8f;
  std::vector<Schedule> group{schedule, schedule};
  group[1].realised_time = 0.7f;
  AdvantageOptions advantage;
  advantage.penalty = options;
  advantage.whiten = false;
  assign_advantages(group, 2, advantage);
  EXPECT_NEAR(group[0].penalty, 50 * 0.08 * 0.08, 1e-4);
  EXPECT_EQ(group[1].penalty, 0);
  EXPECT_NEAR(group[1].advantages[0], 0.5 * 50 * 0.08 * 0.08, 1e-4);
}

}  // namespace
}  // namespace sol::test
