#include "policy/controlled.h"

#include "fake_model.h"
#include "policy/policies.h"
#include "support_policy.h"

namespace sol {
namespace {

using test::error_of;
using test::FakeModel;
using test::FakeSequence;
using ::testing::HasSubstr;

// Plays action 0 and remembers what it was shown.
class Recorder final : public Policy {
 public:
  explicit Recorder(Needs needs, int action = 0) : needs_(needs), action_(action) {}
  std::string name() const override { return "recorder"; }
  const ActionSpace& space() const override { return space_; }
  Needs needs() const override { return needs_; }
  std::unique_ptr<PolicyState> begin(const Budget&, int, const EpisodeId&) const override {
    return std::make_unique<PolicyState>();
  }
  void next(std::span<PolicyStep> steps) const override {
    batch_sizes.push_back(steps.size());
    for (PolicyStep& step : steps) {
      seen.push_back(*step.observation);
      hidden.emplace_back();
      embedding.emplace_back();
      if (const float* h = step.observation->hidden) hidden.back().assign(h, h + 4);
      if (const float* e = step.observation->embedding) embedding.back().assign(e, e + 4);
      step.action = action_;
      step.log_prob = -0.5f;
    }
  }

  mutable std::vector<Observation> seen;
  mutable std::vector<std::vector<float>> hidden, embedding;
  mutable std::vector<size_t> batch_sizes;

 private:
  ActionSpace space_ = test::two_levels();
  Needs needs_;
  int action_;
};

Controlled begin(FakeModel& model, const Policy& policy, int prefix, int horizon = 4,
                 std::vector<float> hidden = {1, 2, 3, 4}) {
  auto sequence = model.create({});
  static_cast<FakeSequence&>(*sequence).tokens.assign(static_cast<size_t>(prefix), 1);
  const Budget budget{0.5f, 0.8f, 0.6f};
  return {std::move(sequence),
          &policy,
          policy.begin(budget, horizon, {}),
          Episode(policy.space(), budget, {horizon, 4, 2}),
          {.hidden = std::move(hidden)}};
}

void step(FakeModel& model, Controlled& controlled, int32_t token) {
  ControlledStep one;
  one.controlled = &controlled;
  one.token = token;
  decode_step(model, {&one, 1});
}

TEST(DecodeStep, ShowsThePolicyWhatItNeedsAndExecutesItsAction) {
  FakeModel model;
  const Recorder policy({.hidden = true, .embedding = true});
  Controlled controlled = begin(model, policy, 20);
  for (int32_t t = 0; t < 3; ++t) step(model, controlled, 5 + t);

  const auto& sequence = static_cast<const FakeSequence&>(*controlled.sequence);
  const Action executed = policy.space().action(0);
  EXPECT_EQ(sequence.length(), 23);
  EXPECT_EQ(sequence.actions, std::vector<Action>(3, executed));

  ASSERT_EQ(policy.seen.size(), 3u);
  EXPECT_EQ(policy.hidden[0], (std::vector<float>{1, 2, 3, 4}));
  EXPECT_EQ(policy.hidden[1], FakeModel::hidden(5, 20, executed));
  EXPECT_EQ(policy.hidden[2], FakeModel::hidden(6, 21, executed));
  EXPECT_EQ(controlled.last.hidden, FakeModel::hidden(7, 22, executed));
  Episode expected(policy.space(), {0.5f, 0.8f, 0.6f}, {4, 4, 2});
  for (int t = 0; t < 3; ++t) {
    const Observation& seen = policy.seen[static_cast<size_t>(t)];
    EXPECT_EQ(policy.embedding[static_cast<size_t>(t)], FakeModel::embedding_of(5 + t));
    EXPECT_EQ(seen.token, 5 + t);
    EXPECT_EQ(seen.step, t + 1);
    EXPECT_EQ(seen.key_count, 21 + t);
    EXPECT_TRUE(seen.effective);
    EXPECT_EQ(seen.previous_action, t == 0 ? -1 : 0);
    EXPECT_EQ(seen.features, expected.features(21 + t));
    EXPECT_LT(seen.previous_entropy, 0);
    EXPECT_LT(seen.drift, 0);
    expected.record(0, 21 + t);
  }
  EXPECT_EQ(controlled.episode.executed(), (std::vector<int>{0, 0, 0}));
}

TEST(DecodeStep, NobodyPaysForWhatIsNotUsed) {
  FakeModel model;
  const Recorder policy({});
  Controlled controlled = begin(model, policy, 20, 4, {});
  step(model, controlled, 3);
  EXPECT_EQ(model.embedding_calls, 0);
  EXPECT_EQ(model.hidden_requests, 0);
  EXPECT_EQ(model.entropy_requests, 0);
  EXPECT_TRUE(policy.hidden[0].empty());
  EXPECT_TRUE(policy.embedding[0].empty());
}

TEST(DecodeStep, StepsThatAreNotEffectiveRunDense) {
  FakeModel model;
  const Recorder policy({});
  Controlled controlled = begin(model, policy, 6);
  step(model, controlled, 3);  // key 7 of sinks 4 + window 2 + current
  step(model, controlled, 3);
  const auto& sequence = static_cast<const FakeSequence&>(*controlled.sequence);
  EXPECT_TRUE(sequence.actions[0].dense());
  EXPECT_EQ(sequence.actions[1], policy.space().action(0));
  EXPECT_FALSE(policy.seen[0].effective);
  EXPECT_TRUE(policy.seen[1].effective);
  EXPECT_EQ(policy.seen[1].previous_action, policy.space().dense_index());
  EXPECT_EQ(controlled.episode.effective_steps(), 1);
}

TEST(DecodeStep, EntropyAndDriftAreThoseOfThePreviousSteps) {
  FakeModel model;
  const Recorder policy({.entropy = true, .drift = true});
  Controlled controlled = begin(model, policy, 20);
  controlled.last.entropy = 0.25f;
  step(model, controlled, 5);
  step(model, controlled, 9);
  step(model, controlled, 9);
  EXPECT_EQ(policy.seen[0].previous_entropy, 0.25f);
  EXPECT_EQ(policy.seen[1].previous_entropy, FakeModel::entropy(5));
  EXPECT_EQ(policy.seen[2].previous_entropy, FakeModel::entropy(9));
  EXPECT_LT(policy.seen[0].drift, 0);  // only one hidden state is known

  const auto drift = [](const std::vector<float>& a, const std::vector<float>& b) {
    double dot = 0, aa = 0, bb = 0;
    for (size_t i = 0; i < 4; ++i) {
      dot += a[i] * b[i];
      aa += a[i] * a[i];
      bb += b[i] * b[i];
    }
    return (1 - dot / std::sqrt(aa * bb)) / 2;
  };
  const Action action = policy.space().action(0);
  const auto first = FakeModel::hidden(5, 20, action), second = FakeModel::hidden(9, 21, action);
  EXPECT_NEAR(policy.seen[1].drift, drift({1, 2, 3, 4}, first), 1e-6);
  EXPECT_NEAR(policy.seen[2].drift, drift(first, second), 1e-6);
}

TEST(DecodeStep, TheSurprisalIsOfTheTokenThatTheStepTakes) {
  FakeModel model;
  const Recorder policy({.surprisal = true});
  Controlled controlled = begin(model, policy, 20);
  controlled.last.log_prob = -2.5f;
  float log_prob = 0;
  ControlledStep one{.controlled = &controlled, .token = 5, .out = {.target = 8}};
  decode_step(model, {&one, 1});  // the caller does not ask for log p(8)
  StepRecord record;
  one = {.controlled = &controlled,
         .token = 8,
         .out = {.target = 3, .log_prob = &log_prob},
         .record = &record};
  decode_step(model, {&one, 1});
  EXPECT_EQ(log_prob, -3.0f);
  EXPECT_EQ(record.surprisal, 8.0f);
  step(model, controlled, 3);  // whose successor nobody names
  EXPECT_EQ(policy.seen[0].surprisal, 2.5f);
  EXPECT_EQ(policy.seen[1].surprisal, 8.0f);
  EXPECT_EQ(policy.seen[2].surprisal, 3.0f);
  EXPECT_THAT(error_of([&] { step(model, controlled, 6); }),
              HasSubstr("needs the log-probability of token 6"));
  controlled.last.log_prob = 1e-7f;  // certain, but for rounding
  step(model, controlled, 6);
  EXPECT_EQ(policy.seen.back().surprisal, 0.0f);
}

TEST(DecodeStep, TheCallerGetsItsOutputsToo) {
  FakeModel model;
  const Recorder policy({.hidden = true, .entropy = true});
  Controlled controlled = begin(model, policy, 20);
  std::vector<float> hidden(4);
  float log_prob = 0, entropy = 0;
  StepCost cost;
  StepRecord record;
  StepTimes times;
  ControlledStep one{
      .controlled = &controlled,
      .token = 5,
      .out = {.hidden = hidden.data(), .target = 8, .log_prob = &log_prob, .entropy = &entropy},
      .cost = &cost,
      .record = &record};
  decode_step(model, {&one, 1}, &times);
  EXPECT_EQ(hidden, FakeModel::hidden(5, 20, policy.space().action(0)));
  EXPECT_EQ(controlled.last.hidden, hidden);
  EXPECT_EQ(log_prob, -8);
  EXPECT_EQ(entropy, FakeModel::entropy(5));
  EXPECT_EQ(controlled.last.entropy, entropy);
  EXPECT_EQ(cost.bytes, 7u);
  EXPECT_GE(times.policy_seconds, 0);
  EXPECT_GT(times.policy_seconds + times.model_seconds, 0);

  EXPECT_EQ(record.features, policy.seen[0].features);
  EXPECT_EQ(record.previous_action, -1);
  EXPECT_EQ(record.action, 0);
  EXPECT_TRUE(record.effective);
  EXPECT_EQ(record.log_prob, -0.5f);
  EXPECT_EQ(record.hidden, (std::vector<float>{1, 2, 3, 4}));
  EXPECT_TRUE(record.embedding.empty());
}

TEST(DecodeStep, PoliciesAreBatchedAndTheModelRunsOnce) {
  FakeModel model;
  const Recorder sparse({.embedding = true}), dense({}, 7);
  std::vector<Controlled> all;
  for (int i = 0; i < 7; ++i) all.push_back(begin(model, i % 3 == 0 ? dense : sparse, 20 + i));
  std::vector<ControlledStep> steps;
  for (int i = 0; i < 7; ++i)
    steps.push_back({&all[static_cast<size_t>(i)], i / 2, {}, nullptr, nullptr});
  decode_step(model, steps);
  EXPECT_EQ(sparse.batch_sizes, (std::vector<size_t>{4}));
  EXPECT_EQ(dense.batch_sizes, (std::vector<size_t>{3}));
  EXPECT_EQ(model.batch_sizes, (std::vector<size_t>{7}));
  EXPECT_EQ(model.embedding_calls, 3);  // tokens 0, 1 and 2 of sequences 1, 2, 4 and 5
  for (size_t i = 0; i < 7; ++i) {
    const auto& sequence = static_cast<const FakeSequence&>(*all[i].sequence);
    EXPECT_EQ(sequence.actions[0].dense(), i % 3 == 0) << i;
    EXPECT_EQ(sequence.tokens.back(), static_cast<int32_t>(i / 2));
  }
  decode_step(model, {});  // nothing to do
}

TEST(DecodeStep, AMissingHiddenStateIsNamed) {
  FakeModel model;
  const Recorder policy({.hidden = true});
  Controlled controlled = begin(model, policy, 20, 4, {});
  EXPECT_THAT(error_of([&] { step(model, controlled, 1); }), HasSubstr("\"recorder\""));
  EXPECT_EQ(controlled.episode.steps(), 0);
}

TEST(DecodeStep, ARecordedScheduleReplaysToTheSameSteps) {
  FakeModel model;
  const auto random = make_random_uniform_policy(test::two_levels(), 1);
  Controlled first = begin(model, *random, 20, 16);
  for (int32_t t = 0; t < 16; ++t) step(model, first, t % 10);
  const auto replay = make_replay_policy(test::two_levels(), {{{0, 0}, first.episode.executed()}});
  Controlled second = begin(model, *replay, 20, 16);
  for (int32_t t = 0; t < 16; ++t) step(model, second, t % 10);
  EXPECT_EQ(static_cast<const FakeSequence&>(*second.sequence).actions,
            static_cast<const FakeSequence&>(*first.sequence).actions);
  EXPECT_TRUE(second.episode.finished());
}

}  // namespace
}  // namespace sol
