// Scoring against the plainest way to do the same, on a model without a transformer and on the
// embedded one.
#include "evaluation/tasks/scorer.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "evaluation/fake_model.h"
#include "policy/controlled.h"
#include "policy/generation.h"
#include "policy/policies.h"
#include "policy/surprised_policy.h"
#include "support.h"
#include "throws.h"

namespace sol::test {
namespace {

ActionSpace space() {
  return ActionSpace({0.1f, 1.0f}, {0.4f, 1.0f}, {4, 16});
}

// Documents whose contexts agree wholly, in part and not at all.
std::vector<RequestGroup> made_groups(int vocabulary) {
  std::vector<RequestGroup> groups;
  const auto text = [&](int seed, int length) {
    std::vector<int32_t> ids;
    for (int i = 0; i < length; ++i) ids.push_back((seed * 31 + i * i * 7 + i) % vocabulary);
    return ids;
  };
  for (int d = 0; d < 7; ++d) {
    RequestGroup group{.id = static_cast<uint64_t>(d), .requests = {}};
    for (int r = 0; r < 2 + d % 3; ++r) {
      TokenRequest request{text(d % 4 == 1 ? d + r : d, 12 + d), 0};
      if (d % 4 == 2) request.tokens[8] = r;  // as winogrande: another name near the end
      request.context = request.tokens.size();
      const auto more = text(100 * d + r, 1 + (d * 5 + r * 3) % 13);
      request.tokens.insert(request.tokens.end(), more.begin(), more.end());
      group.requests.push_back(std::move(request));
    }
    groups.push_back(std::move(group));
  }
  groups.push_back({.id = 7, .requests = {{{3, 4, 5}, 1}, {{3, 9}, 1}}});  // nothing before it
  return groups;
}

// One request alone, with the engine's calls only: dense context, steps, refreshes.
RequestScore plainly(FrozenModel& model, const TokenRequest& request, const Arm& arm,
                     uint64_t document, const ScoringOptions& options) {
  RequestScore score;
  auto sequence = model.create(options.sequence);
  LastPosition last{
      .hidden = std::vector<float>(static_cast<size_t>(model.config().hidden_size), 0.0f),
      .log_prob = 0};
  const auto extend = [&](Sequence& to, size_t from, size_t count) {
    ExtendItem item{&to, std::span(request.tokens).subspan(from, count), {}};
    item.wanted.push_back({count - 1,
                           {.hidden = last.hidden.data(),
                            .target = request.tokens[from + count],
                            .log_prob = &last.log_prob}});
    model.extend({&item, 1});
  };
  if (request.context > 1) extend(*sequence, 0, request.context - 1);
  EpisodeId id{.sequence = document, .rollout = static_cast<uint32_t>(document)};
  Controlled controlled =
      begin_controlled(std::move(sequence), *arm.policy, arm.budget, options.horizon, id, last);
  for (size_t at = request.context - 1; at + 1 < request.tokens.size(); ++at) {
    if (controlled.episode.finished()) {
      const auto horizon = static_cast<size_t>(options.horizon);
      model.truncate(*controlled.sequence, static_cast<int>(at - horizon));
      extend(*controlled.sequence, at - horizon, horizon);
      controlled.last = last;
      ++id.episode;
      begin_episode(controlled, arm.budget, options.horizon, id);
    }
    float log_prob = 0;
    ControlledStep step{&controlled, request.tokens[at], {}, nullptr, nullptr};
    step.out.target = request.tokens[at + 1];
    step.out.log_prob = &log_prob;
    decode_step(model, {&step, 1});
    score.log_likelihood += static_cast<double>(log_prob);
    ++score.spent.steps;
  }
  return score;
}

struct ScorerTest : testing::Test {
  FakeModel model;
  ScoringOptions options{.sequence = {}, .horizon = 3, .batch = 64};
  std::vector<RequestGroup> groups = made_groups(50);
  std::unique_ptr<Policy> fixed = make_fixed_policy(space());
  std::unique_ptr<Policy> random = make_random_matched_policy(space(), 5);
  std::unique_ptr<Policy> dense = make_constant_policy(Action{});
  std::vector<Arm> arms{
      {fixed.get(), {0.4f, 0.6f, 0.5f}}, {random.get(), {0.5f, 0.7f, 0.6f}}, {dense.get(), {}}};
};

TEST_F(ScorerTest, DecodingEqualsOneRequestAtATime) {
  const auto results = Scorer(model, options).decode(groups, arms);
  for (size_t a = 0; a < arms.size(); ++a)
    for (size_t g = 0; g < groups.size(); ++g)
      for (size_t r = 0; r < groups[g].requests.size(); ++r) {
        const RequestScore expected =
            plainly(model, groups[g].requests[r], arms[a], groups[g].id, options);
        const RequestScore& got = results[a][g][r];
        EXPECT_NEAR(got.log_likelihood, expected.log_likelihood, 1e-9) << a << ' ' << g << ' ' << r;
        EXPECT_EQ(got.spent.steps, static_cast<int64_t>(groups[g].requests[r].scored()));
        EXPECT_EQ(got.spent.steps, expected.spent.steps);
      }
  EXPECT_NE(results[0][0][0].log_likelihood, results[2][0][0].log_likelihood);
}

TEST(ScorerOnAModel, EveryRequestsFirstTokenHasItsOwnSurprisal) {
  const auto model = load_model(test_data() / "golden" / "tiny_untied_f32",
                                {.precision = Precision::f32, .deterministic = true});
  const SurprisedPolicy surprised(space(), 5.8f), alone(space(), 5.8f);
  const std::vector<Arm> arms{{&surprised, {}}}, own{{&alone, {}}};
  const ScoringOptions options{.sequence = {}, .horizon = 3, .batch = 1};
  // Contexts that share all but their last token, all of them, and nothing.
  const std::vector<RequestGroup> groups{
      {.id = 0, .requests = {{{1, 2, 3, 4, 5, 9}, 4}, {{1, 2, 3, 7, 5, 9}, 4}}},
      {.id = 1, .requests = {{{1, 2, 3, 4, 5, 9}, 5}, {{1, 2, 3, 4, 5, 8}, 5}}},
      {.id = 2, .requests = {{{3, 4, 5}, 1}, {{8, 4, 5}, 1}}}};
  const auto results = Scorer(*model, options).decode(groups, arms)[0];
  for (const RequestGroup& group : groups)
    for (size_t r = 0; r < group.requests.size(); ++r) {
      const RequestScore score = plainly(*model, group.requests[r], own[0], group.id, options);
      EXPECT_NEAR(results[group.id][r].log_likelihood, score.log_likelihood, 1e-4);
    }
  // Jobs run by length, so the same values come in another order.
  ASSERT_EQ(surprised.seen.size(), alone.seen.size());
  std::ranges::sort(surprised.seen);
  std::ranges::sort(alone.seen);
  for (size_t i = 0; i < alone.seen.size(); ++i)
    EXPECT_NEAR(surprised.seen[i], alone.seen[i], 1e-4) << i;
  EXPECT_EQ(alone.seen[1], 0.0f);  // nothing stands before a context of one token
  EXPECT_GT(alone.seen[2], 0.0f);
}

TEST_F(ScorerTest, DecodingDoesNotDependOnTheBatch) {
  const auto all = Scorer(model, options).decode(groups, arms);
  options.batch = 2;
  const auto two = Scorer(model, options).decode(groups, arms);
  for (size_t a = 0; a < arms.size(); ++a)
    for (size_t g = 0; g < groups.size(); ++g)
      for (size_t r = 0; r < groups[g].requests.size(); ++r) {
        EXPECT_EQ(all[a][g][r].log_likelihood, two[a][g][r].log_likelihood);
        EXPECT_EQ(all[a][g][r].spent.realised, two[a][g][r].spent.realised);
      }
  // Nor on what else is scored.
  const auto last = Scorer(model, options).decode(std::span(groups).last(3), arms);
  EXPECT_EQ(last[0][0][0].log_likelihood, all[0][groups.size() - 3][0].log_likelihood);
}

// All choices of a question meet the same levels, another question others.
TEST_F(ScorerTest, ChoicesOfOneDocumentShareTheirSchedule) {
  std::vector<RequestGroup> same;
  for (uint64_t id = 0; id < 40; ++id)
    same.push_back({.id = id, .requests = {groups[6].requests[0], groups[6].requests[0]}});
  const auto results = Scorer(model, options).decode(same, arms);
  for (size_t a = 0; a < 2; ++a) {
    std::set<double> different;
    for (const auto& group : results[a]) {
      EXPECT_EQ(group[0].log_likelihood, group[1].log_likelihood);
      different.insert(group[0].log_likelihood);
    }
    EXPECT_GT(different.size(), 5u);
    std::vector<StepTotals> totals;
    for (const auto& group : results[a])
      for (const RequestScore& score : group) totals.push_back(score.spent);
    const StepTotals sum = sum_of(totals);
    // A matched schedule of three steps can only be dense at whole steps.
    const double tolerance = a == 0 ? 0.06 : 0.15;
    EXPECT_NEAR(sum.realised.kappa, arms[a].budget.kappa, tolerance);
    EXPECT_NEAR(sum.realised.rho, arms[a].budget.rho, tolerance);
    EXPECT_NEAR(sum.realised.eta, arms[a].budget.eta, tolerance);
  }
}

TEST_F(ScorerTest, TotalsCountEveryEffectiveStepOnce) {
  const std::vector<StepTotals> totals{
      {3, 1, {0.1f, 1.0f, 0.5f}, 2.0}, {5, 3, {0.5f, 0.6f, 0.5f}, 4.0}, {4, 0, {}, 4.0}};
  const StepTotals sum = sum_of(totals);
  EXPECT_EQ(sum.steps, 12);
  EXPECT_EQ(sum.effective_steps, 4);
  EXPECT_FLOAT_EQ(sum.realised.kappa, 0.4f);
  EXPECT_FLOAT_EQ(sum.realised.rho, 0.7f);
  EXPECT_FLOAT_EQ(sum.realised.eta, 0.5f);
  EXPECT_DOUBLE_EQ(sum.attended, 10.0);
  EXPECT_EQ(sum_of({}).realised, Budget{});
}

TEST_F(ScorerTest, PrefillEqualsDenseDecodingAndSharesContexts) {
  const auto prefill = Scorer(model, options).prefill(groups);
  const auto decode = Scorer(model, options).decode(groups, std::span(arms).last(1))[0];
  for (size_t g = 0; g < groups.size(); ++g)
    for (size_t r = 0; r < groups[g].requests.size(); ++r) {
      EXPECT_NEAR(prefill[g][r].log_likelihood, decode[g][r].log_likelihood, 1e-6);
      EXPECT_EQ(prefill[g][r].spent.steps, 0);
    }
  model.prefilled = 0;
  Scorer(model, options).prefill(std::span(groups).first(1));
  const auto& requests = groups[0].requests;
  size_t expected = requests[0].context - 1;  // once
  for (const TokenRequest& request : requests) expected += request.scored();
  EXPECT_EQ(model.prefilled, static_cast<int64_t>(expected));
}

TEST_F(ScorerTest, ProgressAndCancellation) {
  int64_t last = 0, all = -1;
  Scorer(model, options).decode(groups, arms, [&](int64_t done, int64_t total) {
    EXPECT_GT(done, last);
    last = done;
    all = total;
  });
  EXPECT_EQ(last, all);
  std::stop_source source;
  const auto stop = [&](int64_t, int64_t) { source.request_stop(); };
  EXPECT_THROW(Scorer(model, options).decode(groups, arms, stop, source.get_token()), Cancelled);
  EXPECT_THROW(Scorer(model, options).prefill(groups, source.get_token()), Cancelled);
}

TEST_F(ScorerTest, WhatIsWrongIsNamed) {
  model.broken = true;
  EXPECT_THAT([&] { Scorer(model, options).prefill(groups); }, throws({"document 0", "finite"}));
  EXPECT_THAT([&] { Scorer(model, options).decode(groups, arms); }, throws({"finite", "fixed"}));
  arms[0].budget.rho = 1.5f;
  EXPECT_THAT([&] { Scorer(model, options).decode(groups, arms); }, throws({"1.5", "ρ"}));
  FakeModel small(8);
  EXPECT_THAT([&] { Scorer(small, options).prefill(groups); }, throws({"8 positions"}));
  groups[2].requests.clear();
  EXPECT_THAT([&] { Scorer(model, options).prefill(groups); }, throws({"document 2"}));
  EXPECT_THAT([&] { Scorer(model, {.sequence = {}, .horizon = 0}); }, throws({"horizon"}));
}

// What greedy generation under a policy chose has, scored, the same probabilities: the two paths
// through episodes and refreshes are the same.
void expect_as_generation(FrozenModel& model, const Policy& policy, const Budget& budget) {
  GenerationOptions options;
  options.budget = budget;
  options.horizon = 4;
  options.max_tokens = 11;
  options.ignore_end = true;
  TokenRequest request{{0, 500, 900, 31, 77, 1200, 45, 8, 19, 600}, 10};
  Generation generation(model, policy, request.tokens, options);
  Generation* const alone[] = {&generation};
  double expected = 0;
  while (!generation.finished()) {
    run_dense(model, alone);
    ControlledStep step = generation.next_step();
    decode_step(model, {&step, 1});
    double largest = -1e30, sum = 0;
    const float* logits = step.out.logits;
    for (int i = 0; i < model.config().vocab_size; ++i)
      largest = std::max(largest, static_cast<double>(logits[i]));
    for (int i = 0; i < model.config().vocab_size; ++i)
      sum += std::exp(static_cast<double>(logits[i]) - largest);
    const int32_t token = generation.complete_step();
    expected += static_cast<double>(logits[token]) - largest - std::log(sum);
    request.tokens.push_back(token);
  }
  const std::vector<RequestGroup> groups{{.id = 0, .requests = {request}}};
  const std::vector<Arm> arms{{&policy, budget}};
  const RequestScore score =
      Scorer(model, {.sequence = options.sequence, .horizon = 4}).decode(groups, arms)[0][0][0];
  EXPECT_NEAR(score.log_likelihood, expected, 1e-4);
  EXPECT_EQ(score.spent.steps, 11);
  EXPECT_EQ(score.spent.effective_steps, generation.result().effective_steps);
  EXPECT_EQ(score.spent.realised, generation.result().realised);
  EXPECT_NEAR(score.spent.attended / 11, generation.result().attended, 1e-9);
  EXPECT_EQ(generation.result().refreshes, 2);
  const auto dense = Scorer(model, {}).prefill(groups);
  EXPECT_GT(std::abs(dense[0][0].log_likelihood - score.log_likelihood), 0.1);
}

TEST(ScorerOnAModel, AgreesWithGeneration) {
  ModelOptions options;
  options.precision = Precision::f32;
  options.deterministic = true;
  const auto model = load_model(source_dir() / "models/default", options);
  const Budget budget{0.2f, 0.5f, 0.375f};
  expect_as_generation(*model, *make_constant_policy(parse_action("k020-s050-q6")), budget);
  expect_as_generation(*model, *make_entropy_policy(space(), model->config().vocab_size), budget);
  expect_as_generation(*model, *make_drift_policy(space()), budget);
  const SurprisedPolicy surprised(space(), 3.0f);
  expect_as_generation(*model, surprised, budget);
  // First by the generation, then by the scorer: 11 steps, of 3 episodes.
  ASSERT_EQ(surprised.seen.size(), 22u);
  for (size_t t = 0; t < 11; ++t) EXPECT_EQ(surprised.seen[t], surprised.seen[11 + t]) << t;
}

}  // namespace
}  // namespace sol::test
