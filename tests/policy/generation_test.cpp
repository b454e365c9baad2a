#include "policy/generation.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <string>

#include "policy/cost_table.h"
#include "policy/policies.h"
#include "policy/surprised_policy.h"
#include "sol/error.h"
#include "support.h"
#include "throws.h"

namespace sol {
namespace {

std::unique_ptr<FrozenModel> tiny_model() {
  return load_model(test::test_data() / "golden/tiny_tied_f32",
                    {.precision = Precision::f32, .deterministic = true});
}

std::vector<int32_t> prompt_of(int n) {
  std::vector<int32_t> ids;
  for (int i = 0; i < n; ++i) ids.push_back((37 * i + 11) % 300);
  return ids;
}

constexpr int horizon = 4;

GenerationOptions options_for(int max_tokens) {
  GenerationOptions options;
  options.horizon = horizon;
  options.max_tokens = max_tokens;
  options.ignore_end = true;
  return options;
}

// Plays a list of actions over and over and keeps what it was shown.
class WatchingPolicy final : public Policy {
 public:
  explicit WatchingPolicy(std::vector<int> actions) : actions_(std::move(actions)) {}

  std::string name() const override { return "watching"; }
  const ActionSpace& space() const override { return space_; }
  Needs needs() const override { return {.hidden = true, .entropy = true, .drift = true}; }
  std::unique_ptr<PolicyState> begin(const Budget&, int, const EpisodeId& id) const override {
    episodes.push_back(id);
    return std::make_unique<PolicyState>();
  }
  void next(std::span<PolicyStep> steps) const override {
    for (PolicyStep& step : steps) {
      const Observation& o = *step.observation;
      seen.push_back(o);
      hidden.emplace_back(o.hidden, o.hidden + 64);
      step.action = actions_[(seen.size() - 1) % actions_.size()];
    }
  }

  mutable std::vector<EpisodeId> episodes;
  mutable std::vector<Observation> seen;
  mutable std::vector<std::vector<float>> hidden;

 private:
  std::vector<int> actions_;
  ActionSpace space_{{0.25f, 1.0f}, {0.5f, 1.0f}, {4, 16}};
};

// The same thing in the plainest words: refresh after every T steps, greedy.
std::vector<int32_t> by_hand(FrozenModel& model, const Action& action, std::vector<int32_t> tokens,
                             int count, bool refresh) {
  const size_t vocab = static_cast<size_t>(model.config().vocab_size);
  auto sequence = model.create({});
  ExtendItem prefix{sequence.get(), std::span(tokens).first(tokens.size() - 1), {}};
  model.extend({&prefix, 1});
  std::vector<float> logits(vocab);
  std::vector<int32_t> chosen;
  for (int t = 0; t < count; ++t) {
    if (refresh && t > 0 && t % horizon == 0) {
      const size_t cached = tokens.size() - 1;
      model.truncate(*sequence, static_cast<int>(cached) - horizon);
      ExtendItem again{sequence.get(), std::span(tokens).subspan(cached - horizon, horizon), {}};
      model.extend({&again, 1});
    }
    DecodeItem item{sequence.get(), tokens.back(), action, {.logits = logits.data()}, nullptr};
    model.decode({&item, 1});
    chosen.push_back(argmax(logits));
    tokens.push_back(chosen.back());
  }
  return chosen;
}

TEST(Generation, FollowsTheProtocolWithAndWithoutRefresh) {
  const auto model = tiny_model();
  const Action action = parse_action("k025-s050-q4");
  const auto policy = make_constant_policy(action);
  GenerationOptions options = options_for(19);
  options.budget = {action.kappa, action.rho, action.eta()};
  const GenerationResult refreshed = generate(*model, *policy, prompt_of(24), options);
  EXPECT_EQ(refreshed.tokens, by_hand(*model, action, prompt_of(24), 19, true));
  EXPECT_EQ(refreshed.refreshes, 4);
  EXPECT_EQ(refreshed.finish, FinishReason::max_tokens);

  options.refresh = false;
  const GenerationResult plain = generate(*model, *policy, prompt_of(24), options);
  EXPECT_EQ(plain.tokens, by_hand(*model, action, prompt_of(24), 19, false));
  EXPECT_EQ(plain.refreshes, 0);
  EXPECT_NE(plain.tokens, refreshed.tokens);  // else this test shows nothing
}

TEST(Generation, NoRefreshAfterTheFinalStep) {
  const auto model = tiny_model();
  const auto policy = make_constant_policy(parse_action("k025-s050-q4"));
  EXPECT_EQ(generate(*model, *policy, prompt_of(24), options_for(horizon)).refreshes, 0);
  EXPECT_EQ(generate(*model, *policy, prompt_of(24), options_for(horizon + 1)).refreshes, 1);
  EXPECT_EQ(generate(*model, *policy, prompt_of(24), options_for(2 * horizon)).refreshes, 1);
}

TEST(Generation, DenseEqualsADensePassOverItsOwnText) {
  const auto model = tiny_model();
  const auto policy = make_constant_policy(Action{});
  std::vector<int32_t> tokens = prompt_of(10);
  const GenerationResult result = generate(*model, *policy, tokens, options_for(9));
  EXPECT_EQ(result.refreshes, 0);  // there is nothing to recompute
  EXPECT_EQ(result.realised, Budget{});
  EXPECT_EQ(result.attended, 1.0);

  tokens.insert(tokens.end(), result.tokens.begin(), result.tokens.end());
  std::vector<float> logits(static_cast<size_t>(model->config().vocab_size));
  const auto sequence = model->create({});
  for (size_t i = 0; i + 1 < tokens.size(); ++i) {
    ExtendItem item{
        sequence.get(), std::span(tokens).subspan(i, 1), {{0, {.logits = logits.data()}}}};
    model->extend({&item, 1});
    if (i >= 9) {
      EXPECT_EQ(argmax(logits), tokens[i + 1]) << "position " << i;
    }
  }
}

TEST(Generation, ThePolicyStartsAnewEveryEpisodeAndSeesTheRecomputedState) {
  const auto model = tiny_model();
  const WatchingPolicy policy({0, 3, 5});
  std::vector<int32_t> tokens = prompt_of(20);
  GenerationOptions options = options_for(2 * horizon + 1);
  options.index = 7;
  options.rollout = 5;
  const GenerationResult result = generate(*model, policy, tokens, options);

  ASSERT_EQ(policy.episodes.size(), 3u);
  for (uint64_t e = 0; e < 3; ++e) {
    EXPECT_EQ(policy.episodes[e].sequence, 7u);
    EXPECT_EQ(policy.episodes[e].episode, e);
    EXPECT_EQ(policy.episodes[e].rollout, 5u);
    EXPECT_TRUE(policy.episodes[e].single);
  }
  ASSERT_EQ(policy.seen.size(), static_cast<size_t>(2 * horizon + 1));
  for (size_t i = 0; i < policy.seen.size(); ++i) {
    const Observation& o = policy.seen[i];
    EXPECT_EQ(o.step, static_cast<int>(i) % horizon + 1);
    EXPECT_EQ(o.key_count, 20 + static_cast<int>(i));
    EXPECT_EQ(o.token, i == 0 ? tokens.back() : result.tokens[i - 1]);
    EXPECT_EQ(o.previous_action < 0, i % horizon == 0);
    EXPECT_GE(o.previous_entropy, 0.0f);
    EXPECT_GE(o.drift, 0.0f);
  }

  // At the start of an episode, h is that of a dense pass over all tokens before the current one.
  tokens.insert(tokens.end(), result.tokens.begin(), result.tokens.end());
  for (int e = 0; e < 3; ++e) {
    const size_t before = 19 + static_cast<size_t>(e * horizon);
    std::vector<float> dense(64);
    const auto sequence = model->create({});
    ExtendItem item{
        sequence.get(), std::span(tokens).first(before), {{before - 1, {.hidden = dense.data()}}}};
    model->extend({&item, 1});
    for (size_t i = 0; i < 64; ++i)
      EXPECT_NEAR(policy.hidden[static_cast<size_t>(e * horizon)][i], dense[i], 2e-5)
          << e << " " << i;
  }
}

TEST(Generation, RealisedBudgetsCountEffectiveStepsOnly) {
  const auto model = tiny_model();
  const WatchingPolicy policy({0, 3, 5, 6, 7});
  // 4 sinks, 2 of window and the current token: steps with 8 keys or more count.
  GenerationOptions options = options_for(9);
  const GenerationResult result = generate(*model, policy, prompt_of(5), options);
  EXPECT_EQ(result.steps, 9);
  EXPECT_EQ(result.effective_steps, 6);
  // Steps 4 to 9 execute actions 6 7 0 3 5 6 of {0.25,1} x {0.5,1} x {4,16}.
  EXPECT_FLOAT_EQ(result.realised.kappa, (1 + 1 + 0.25f + 0.25f + 1 + 1) / 6);
  EXPECT_FLOAT_EQ(result.realised.rho, (1 + 1 + 0.5f + 1 + 0.5f + 1) / 6);
  EXPECT_FLOAT_EQ(result.realised.eta, (0.25f + 1 + 0.25f + 1 + 1 + 0.25f) / 6);
  EXPECT_GT(result.bytes, 0u);
  EXPECT_LT(result.attended, 1.0);
}

TEST(Generation, TheSurprisalIsOfTheTokensThatWereChosen) {
  const auto model = tiny_model();
  const ActionSpace space({0.25f, 1.0f}, {0.5f, 1.0f}, {4, 16});
  const test::SurprisedPolicy policy(space, 5.5f);
  const GenerationOptions options = options_for(9);
  const GenerationResult result = generate(*model, policy, prompt_of(12), options);
  ASSERT_EQ(policy.seen.size(), 9u);
  // An episode's first token: by a dense pass over what is before it, also after a refresh.
  std::vector<int32_t> text = prompt_of(12);
  text.insert(text.end(), result.tokens.begin(), result.tokens.end());
  for (const size_t step : {0, horizon, 2 * horizon}) {
    const size_t at = 11 + step;
    const auto sequence = model->create({});
    float log_prob = 0;
    ExtendItem item{sequence.get(), std::span(text).first(at), {}};
    item.wanted.push_back({at - 1, {.target = text[at], .log_prob = &log_prob}});
    model->extend({&item, 1});
    EXPECT_NEAR(policy.seen[step], -log_prob, 1e-4) << step;
  }
  // Without refreshes, and within an episode, by the step before.
  GenerationOptions plain = options;
  plain.refresh = false;
  const test::SurprisedPolicy other(space, 5.5f);
  Generation generation(*model, other, prompt_of(12), plain);
  std::vector<float> expected;
  Generation* const alone[] = {&generation};
  run_dense(*model, alone);
  while (!generation.finished()) {
    ControlledStep step = generation.next_step();
    decode_step(*model, {&step, 1});
    const auto token = static_cast<size_t>(generation.complete_step());
    double sum = 0;
    for (const float logit : generation.logits()) sum += std::exp(static_cast<double>(logit));
    expected.push_back(
        static_cast<float>(std::log(sum) - static_cast<double>(generation.logits()[token])));
  }
  for (size_t t = 1; t < other.seen.size(); ++t)
    EXPECT_NEAR(other.seen[t], expected[t - 1], 1e-4) << t;
  const test::SurprisedPolicy lone(space, 5.5f);
  generate(*model, lone, {7}, options_for(1));
  EXPECT_EQ(lone.seen, std::vector<float>{0.0f});  // nothing is before it
}

TEST(Generation, APromptOfOneTokenIsEnough) {
  const auto model = tiny_model();
  const WatchingPolicy policy({0});
  const GenerationResult result = generate(*model, policy, {5}, options_for(3));
  EXPECT_EQ(result.tokens, by_hand(*model, Action{}, {5}, 3, false));
  EXPECT_EQ(policy.hidden[0], std::vector<float>(64, 0.0f));
}

TEST(Generation, SamplingDependsOnSeedAndIndexOnly) {
  const auto model = tiny_model();
  const auto policy = make_constant_policy(Action{});
  GenerationOptions options = options_for(12);
  options.sampling = {.temperature = 2.0, .seed = 3};
  const auto tokens = [&] { return generate(*model, *policy, prompt_of(8), options).tokens; };
  const auto first = tokens();
  EXPECT_EQ(tokens(), first);
  options.index = 1;
  EXPECT_NE(tokens(), first);
  options.index = 0;
  options.sampling.seed = 4;
  EXPECT_NE(tokens(), first);
}

TEST(Generation, EndsForEveryReason) {
  const auto model = tiny_model();
  const auto policy = make_constant_policy(Action{});
  const int context = model->config().max_position_embeddings;

  EXPECT_EQ(generate(*model, *policy, prompt_of(4), options_for(0)).finish,
            FinishReason::max_tokens);

  GenerationOptions unlimited = options_for(-1);
  const GenerationResult full = generate(*model, *policy, prompt_of(context - 2), unlimited);
  EXPECT_EQ(full.finish, FinishReason::context_end);
  EXPECT_EQ(full.tokens.size(), 3u);  // the last of them is chosen but no longer fits

  int seen = 0;
  const GenerationResult stopped =
      generate(*model, *policy, prompt_of(4), unlimited, [&](int32_t) { return ++seen < 5; });
  EXPECT_EQ(stopped.finish, FinishReason::stopped);
  EXPECT_EQ(stopped.tokens.size(), 5u);
  // By the last token that was allowed as well.
  seen = 0;
  EXPECT_EQ(
      generate(*model, *policy, prompt_of(4), options_for(5), [&](int32_t) { return ++seen < 5; })
          .finish,
      FinishReason::stopped);

  std::stop_source source;
  const GenerationResult cancelled = generate(
      *model, *policy, prompt_of(4), unlimited,
      [&](int32_t) {
        source.request_stop();
        return true;
      },
      source.get_token());
  EXPECT_EQ(cancelled.finish, FinishReason::cancelled);
  EXPECT_EQ(cancelled.tokens.size(), 1u);
}

TEST(Generation, BadRequestsAreErrors) {
  const auto model = tiny_model();
  const auto policy = make_constant_policy(Action{});
  const int context = model->config().max_position_embeddings;
  EXPECT_THROW(generate(*model, *policy, {}, options_for(1)), Error);
  EXPECT_THROW(generate(*model, *policy, prompt_of(context + 1), options_for(1)), Error);
  EXPECT_THROW(generate(*model, *policy, {100000}, options_for(1)), Error);
  EXPECT_THROW(generate(*model, *policy, {3, -1}, options_for(1)), Error);
  EXPECT_THROW(generate(*model, *policy, {3}, options_for(-2)), Error);
  GenerationOptions options = options_for(1);
  options.horizon = 0;
  EXPECT_THROW(generate(*model, *policy, {3}, options), Error);
  const WatchingPolicy watching({0});
  options = options_for(1);
  options.budget.kappa = 1.5f;
  EXPECT_THROW(generate(*model, watching, {3}, options), Error);
}

// As a server does: several generations whose steps are decoded together.
TEST(Generation, BatchedStepsGiveTheSameText) {
  const auto model = tiny_model();
  const WatchingPolicy alone({0, 3, 5}), first({0, 3, 5}), second({0, 3, 5});
  const auto expected = generate(*model, alone, prompt_of(20), options_for(9)).tokens;

  Generation a(*model, first, prompt_of(20), options_for(9));
  Generation b(*model, second, prompt_of(13), options_for(6));
  Generation* const both[] = {&a, &b};
  while (!a.finished() || !b.finished()) {
    run_dense(*model, both);
    std::vector<ControlledStep> steps;
    if (!a.finished()) steps.push_back(a.next_step());
    if (!b.finished()) steps.push_back(b.next_step());
    decode_step(*model, steps);
    if (!a.finished()) a.complete_step();
    if (!b.finished()) b.complete_step();
  }
  EXPECT_EQ(a.result().tokens, expected);
  EXPECT_EQ(b.result().tokens.size(), 6u);
}

std::vector<int32_t> run_to_end(FrozenModel& model, Generation& generation, int dense_piece) {
  while (!generation.finished()) {
    while (const int due = generation.dense_due()) {
      ExtendItem item = generation.next_dense(std::min(due, dense_piece));
      model.extend({&item, 1});
      generation.complete_dense(0.0);
    }
    ControlledStep step = generation.next_step();
    decode_step(model, {&step, 1});
    generation.complete_step();
  }
  return generation.result().tokens;
}

// A server cuts long prompts into pieces and continues what another request has computed: with
// deterministic products neither changes a bit.
TEST(Generation, PiecesOfPromptsAndCachedPrefixesChangeNothing) {
  const auto model = tiny_model();
  const auto policy = make_fixed_policy(ActionSpace({0.25f, 1.0f}, {0.5f, 1.0f}, {4, 16}));
  const std::vector<int32_t> prompt = prompt_of(45);
  GenerationOptions options = options_for(20);
  options.budget = {0.5f, 0.8f, 0.6f};
  Generation whole(*model, *policy, prompt, options);
  const std::vector<int32_t> expected = run_to_end(*model, whole, 1000);
  const std::vector<float> logits(whole.logits().begin(), whole.logits().end());

  for (const int piece : {1, 7, 32}) {
    Generation cut(*model, *policy, prompt, options);
    EXPECT_EQ(run_to_end(*model, cut, piece), expected) << piece;
    EXPECT_THAT(cut.logits(), testing::ElementsAreArray(logits)) << piece;
  }

  // 44 of the prompt and four of five episodes: the last one's tokens were never computed anew.
  EXPECT_EQ(whole.dense_length(true), 44 + 16);
  const auto sequence = whole.fork_dense(true);
  EXPECT_EQ(sequence->length(), 44 + 16);
  for (const int shared : {43, 20, 1}) {
    auto cached = std::move(model->fork(*sequence, 1)[0]);
    model->truncate(*cached, shared);
    Generation again(*model, *policy, prompt, options, std::move(cached));
    EXPECT_EQ(again.dense_due(), 44 - shared);
    EXPECT_EQ(run_to_end(*model, again, 1000), expected) << shared;
    EXPECT_THAT(again.logits(), testing::ElementsAreArray(logits)) << shared;
  }
}

// Spends a fixed amount more than it is asked for in every episode.
class WastefulPolicy final : public Policy {
 public:
  std::string name() const override { return "wasteful"; }
  const ActionSpace& space() const override { return space_; }
  struct State : PolicyState {
    int dense_steps;
  };
  std::unique_ptr<PolicyState> begin(const Budget& budget, int steps,
                                     const EpisodeId&) const override {
    auto state = std::make_unique<State>();
    state->dense_steps = static_cast<int>((budget.kappa - 0.25f) / 0.75f * steps + 0.5f) + 2;
    return state;
  }
  void next(std::span<PolicyStep> steps) const override {
    for (PolicyStep& step : steps)
      step.action = step.observation->step <= static_cast<State*>(step.state)->dense_steps ? 1 : 0;
  }

 private:
  ActionSpace space_{{0.25f, 1.0f}, {1.0f}, {16}};
};

TEST(Generation, MakesUpForWhatEarlierEpisodesSpent) {
  const auto model = tiny_model();
  const WastefulPolicy policy;
  GenerationOptions options = options_for(96);
  options.horizon = 16;
  options.budget = {0.5f, 1.0f, 1.0f};
  Generation wasteful(*model, policy, prompt_of(12), options);
  run_to_end(*model, wasteful, 1000);
  EXPECT_GT(wasteful.result().realised.kappa, 0.57f);
  options.make_up = true;
  Generation corrected(*model, policy, prompt_of(12), options);
  run_to_end(*model, corrected, 1000);
  EXPECT_NEAR(corrected.result().realised.kappa, 0.5f, 0.03f);
}

TEST(Generation, GivenTokensAreTakenInsteadOfDrawnOnes) {
  const auto model = tiny_model();
  const WatchingPolicy policy({0, 3, 5});
  ASSERT_FALSE(model->config().eos_token_ids.empty());
  const int32_t end = model->config().eos_token_ids[0];
  GenerationOptions options = options_for(5);
  options.ignore_end = false;
  options.given = {7, end, 9, 11};
  Generation generation(*model, policy, prompt_of(12), options);
  const std::vector<int32_t> tokens = run_to_end(*model, generation, 1000);
  ASSERT_EQ(tokens.size(), 5u);
  EXPECT_EQ(std::vector<int32_t>(tokens.begin(), tokens.begin() + 4), options.given);
  EXPECT_EQ(tokens[4], argmax(generation.logits()));
}

// Before anything looks a token up in the logits.
TEST(Generation, GivenTokensAreOfTheVocabulary) {
  const auto model = tiny_model();
  const WatchingPolicy policy({0});
  GenerationOptions options = options_for(1);
  const std::string size = std::to_string(model->config().vocab_size);
  for (const int32_t token : {-1, model->config().vocab_size}) {
    options.given = {token};
    EXPECT_THAT([&] { Generation(*model, policy, prompt_of(12), options); },
                test::throws({"token " + std::to_string(token), "vocabulary of " + size}));
  }
}

// Half of the channels at every step, whatever is asked for: 0.6 of the dense time.
class TimedPolicy final : public Policy {
 public:
  std::string name() const override { return "timed"; }
  const ActionSpace& space() const override { return space_; }
  const CostTable* costs() const override { return &costs_; }
  std::unique_ptr<PolicyState> begin(const Budget& budget, int, const EpisodeId&) const override {
    asked.push_back(budget);
    return std::make_unique<PolicyState>();
  }
  void next(std::span<PolicyStep> steps) const override {
    for (PolicyStep& step : steps) step.action = 0;
  }
  mutable std::vector<Budget> asked;

 private:
  CostTable costs_{horizon, {0.5f}, {{100, 10, 4, {1}}}, {4}};
  ActionSpace space_{{1.0f}, {0.5f, 1.0f}, {16}};
};

TEST(Generation, ATimeIsAskedForAndMadeUpFor) {
  const auto model = tiny_model();
  const TimedPolicy policy;
  GenerationOptions options = options_for(3 * horizon);
  options.budget = time_budget(0.7f);
  options.make_up = true;
  const GenerationResult result = generate(*model, policy, prompt_of(24), options);
  EXPECT_NEAR(result.requested_time, 0.7, 1e-6);
  EXPECT_NEAR(result.realised_time, 0.6, 1e-6);
  EXPECT_EQ(result.realised, (Budget{1.0f, 0.5f, 1.0f}));
  // After one episode at 0.6 the next may take 0.8, after two 0.9.
  ASSERT_EQ(policy.asked.size(), 3u);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_NEAR(policy.asked[i].kappa, 0.7 + 0.1 * static_cast<double>(i), 1e-6);
    EXPECT_EQ(policy.asked[i].rho, policy.asked[i].kappa);
  }
}

TEST(Generation, EachEpisodesLengthDecidesAboutItsRequest) {
  const auto model = tiny_model();
  const TimedPolicy policy;
  GenerationOptions options = options_for(2 * horizon);
  std::vector<int> lengths;
  options.budget_at = [&](int keys) {
    lengths.push_back(keys);
    return time_budget(keys < 28 ? 0.9f : 0.8f);
  };
  generate(*model, policy, prompt_of(24), options);
  EXPECT_EQ(policy.asked, (std::vector<Budget>{time_budget(0.9f), time_budget(0.8f)}));
  EXPECT_EQ(lengths.front(), 26);
}

}  // namespace
}  // namespace sol
