#include "training/distillation.h"

#include <gtest/gtest.h>

#include <cmath>

#include "golden_schedules.h"
#include "sol/error.h"
#include "training/initialisation.h"
#include "training/torch_network.h"

namespace sol::test {
namespace {

Schedule made(std::vector<float> rewards, float penalty, float realised_kappa = 0.5f) {
  Schedule s;
  s.effective.assign(rewards.size(), 1);
  s.rewards = std::move(rewards);
  s.penalty = penalty;
  s.budget = {0.5f, 0.7f, 1.0f};
  s.realised = {realised_kappa, 0.7f, 1.0f};
  return s;
}

std::vector<float> imitations(const std::vector<Schedule>& schedules) {
  std::vector<float> out;
  for (const Schedule& s : schedules) out.push_back(s.imitation);
  return out;
}

using Floats = std::vector<float>;

TEST(Distillation, TheBestByRewardsMinusPenaltyOfEachGroup) {
  std::vector<Schedule> schedules{made({-1, -3}, 0), made({-2, -1}, 0), made({-1, -1}, 2),
                                  made({-5, -5}, 0), made({-9, -9}, 0), made({-9, -2}, 0.5f)};
  schedules[0].imitation = 7;  // of an earlier use
  EXPECT_EQ(mark_best_schedules(schedules, 3, 0.05), 2);
  // -4, -3 and -4; -10, -18 and -11.5.
  EXPECT_EQ(imitations(schedules), (Floats{0, 3, 0, 3, 0, 0}));
}

TEST(Distillation, OnlyEffectiveStepsCount) {
  std::vector<Schedule> schedules{made({-9, -1}, 0), made({-1, -2}, 0)};
  for (Schedule& s : schedules) s.effective[0] = 0;
  EXPECT_EQ(mark_best_schedules(schedules, 2, 0.05), 1);
  EXPECT_EQ(imitations(schedules), (Floats{2, 0}));
}

TEST(Distillation, WhatMissesItsBudgetIsLeftOut) {
  std::vector<Schedule> schedules{made({-1}, 0, 0.56f), made({-2}, 0, 0.44f), made({-3}, 0, 0.54f),
                                  made({-4}, 0, 0.5f)};
  // The best of those within 0.05 is no better than the mean of all, -2.5.
  EXPECT_EQ(mark_best_schedules(schedules, 4, 0.05), 0);
  EXPECT_EQ(imitations(schedules), (Floats{0, 0, 0, 0}));
  schedules[3].rewards = {-10};  // mean -4
  EXPECT_EQ(mark_best_schedules(schedules, 4, 0.05), 1);
  EXPECT_EQ(imitations(schedules), (Floats{0, 0, 4, 0}));
  EXPECT_EQ(mark_best_schedules(schedules, 4, 0.07), 1);
  EXPECT_EQ(imitations(schedules), (Floats{4, 0, 0, 0}));
  schedules[0].realised.eta = 0.9f;  // another axis
  EXPECT_EQ(mark_best_schedules(schedules, 4, 0.07), 1);
  EXPECT_EQ(imitations(schedules), (Floats{0, 4, 0, 0}));
  for (Schedule& s : schedules) s.realised.kappa = std::nanf("");
  EXPECT_EQ(mark_best_schedules(schedules, 4, 0.07), 0);
}

TEST(Distillation, EqualSchedulesTeachNothingAndTiesGoToTheFirst) {
  std::vector<Schedule> equal(5, made({-0.1f, -0.3f}, 0.7f));
  EXPECT_EQ(mark_best_schedules(equal, 5, 0.05), 0);
  equal[1].rewards[0] += 1e-4f;  // as rounding may
  EXPECT_EQ(mark_best_schedules(equal, 5, 0.05), 0);
  equal[1].rewards[0] = equal[3].rewards[0] = -0.05f;
  EXPECT_EQ(mark_best_schedules(equal, 5, 0.05), 1);
  EXPECT_EQ(imitations(equal), (Floats{0, 5, 0, 0, 0}));
}

TEST(Distillation, RefusesIncompleteGroups) {
  std::vector<Schedule> three(3, made({-1}, 0));
  EXPECT_THROW(mark_best_schedules(three, 2, 0.05), Error);
  EXPECT_THROW(mark_best_schedules(three, 0, 0.05), Error);
}

// Two schedules of two steps over three actions, and a network whose logits are pi's biases.
struct ConstantPolicy {
  PolicyNetworkShape shape{
      .hidden_size = 4, .actions = 3, .d_model = 4, .heads = 1, .action_dim = 2, .max_length = 2};
  std::vector<Schedule> schedules{2};
  // At temperature 1 the actions have probabilities 1/2, 1/4 and 1/4.
  std::vector<float> biases{std::log(2.0f), 0, 0};

  ConstantPolicy() {
    for (size_t n = 0; n < 2; ++n) {
      Schedule& s = schedules[n];
      s.hidden.assign(8, 0.5f);
      s.embedding.assign(8, -0.5f);
      s.features.assign(2, {});
      s.previous_actions = {-1, 0};
      s.actions = n == 0 ? std::vector{0, 1} : std::vector{2, 2};
      s.effective = {1, 1};
      s.advantages = {0, 0};
      s.old_log_probs = {std::log(s.actions[0] == 0 ? 0.5f : 0.25f), std::log(0.25f)};
    }
  }
  TorchNetwork network() const {
    Parameters parameters = initial_parameters(shape, 5);
    for (const char* name : {"pi.weight", "budget_head.2.weight", "budget_head.2.bias"})
      std::ranges::fill(parameters.at(name).values, 0.0f);
    parameters.at("pi.bias").values = biases;
    return TorchNetwork(shape, parameters);
  }
};

TEST(DistillationLoss, ByHand) {
  ConstantPolicy made;
  made.schedules[0].imitation = 2;
  TorchNetwork network = made.network();
  const LossOptions options{.temperature = 1, .entropy = 0, .distil = 0.3};
  const LossTerms terms = network.accumulate(pointers(made.schedules), options, 1.0);
  // Four steps, two of the best: -2 (ln 1/2 + ln 1/4) / 4 = 3 ln 2 / 2.
  EXPECT_NEAR(terms.distil_loss, 1.5 * std::log(2.0), 1e-6);
  EXPECT_NEAR(terms.policy_loss, 0.0, 1e-6);
  EXPECT_NEAR(terms.loss, 0.45 * std::log(2.0), 1e-6);
  // Of a logit: -0.3 · 2/4 · Σ over the two steps of (1 where it was chosen) - probability.
  const std::span<float> gradient = network.gradient("pi.bias");
  EXPECT_NEAR(gradient[0], -0.15 * (1 - 2 * 0.5), 1e-6);
  EXPECT_NEAR(gradient[1], -0.15 * (1 - 2 * 0.25), 1e-6);
  EXPECT_NEAR(gradient[2], -0.15 * (0 - 2 * 0.25), 1e-6);
}

TEST(DistillationLoss, StepsThatAreNotEffectiveAreLeftOut) {
  ConstantPolicy made;
  made.schedules[0].imitation = 2;
  made.schedules[0].effective[1] = 0;
  TorchNetwork network = made.network();
  const LossOptions options{.temperature = 1, .entropy = 0, .distil = 0.3};
  EXPECT_NEAR(network.accumulate(pointers(made.schedules), options, 1.0).distil_loss,
              2 * std::log(2.0) / 3, 1e-6);
}

TEST(DistillationLoss, AtAWeightOfZeroNothingChanges) {
  ConstantPolicy made;
  made.schedules[0].advantages = {1, -2};
  TorchNetwork without = made.network(), with = made.network();
  const LossTerms plain = without.accumulate(pointers(made.schedules), {}, 1.0);
  made.schedules[0].imitation = 2;
  const LossTerms terms = with.accumulate(pointers(made.schedules), {}, 1.0);
  EXPECT_EQ(terms.loss, plain.loss);
  EXPECT_EQ(terms.distil_loss, 0.0);
  for (const std::string& name : with.names())
    EXPECT_EQ(largest_difference(with.gradient(name), without.gradient(name)), 0.0) << name;
}

// At a ratio of 1 the clipped loss has the gradient of -A · log π: imitation is an advantage that
// is the same at every step of the best schedule.
TEST(DistillationLoss, HasThePolicyGradientsOfAnAdvantageOfItsWeight) {
  const PolicyNetworkShape shape{
      .hidden_size = 4, .actions = 3, .d_model = 8, .heads = 2, .max_length = 2};
  ConstantPolicy made;
  TorchNetwork distilled(shape, initial_parameters(shape, 9)),
      rewarded(shape, initial_parameters(shape, 9));
  const auto log_probs = distilled.log_probs(pointers(made.schedules), 1.3);
  for (size_t n = 0; n < 2; ++n)
    made.schedules[n].old_log_probs = {log_probs[2 * n], log_probs[2 * n + 1]};
  made.schedules[1].imitation = 2;
  distilled.accumulate(pointers(made.schedules), {.entropy = 0, .distil = 0.25}, 1.0);
  made.schedules[1].advantages = {0.5, 0.5};
  rewarded.accumulate(pointers(made.schedules), {.entropy = 0}, 1.0);
  double largest = 0;
  for (const std::string& name : distilled.names()) {
    EXPECT_LE(largest_difference(distilled.gradient(name), rewarded.gradient(name)), 1e-6) << name;
    for (const float g : distilled.gradient(name))
      largest = std::max(largest, static_cast<double>(std::abs(g)));
  }
  EXPECT_GT(largest, 1e-2);
}

}  // namespace
}  // namespace sol::test
