#include "evaluation/perplexity.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <set>

#include "fake_model.h"
#include "policy/policies.h"
#include "policy/surprised_policy.h"
#include "sol/error.h"
#include "support.h"

namespace sol {
namespace {

using test::evaluate_arms;
using test::fake_blocks;
using test::FakeModel;
using test::first_blocks;
using test::small_protocol;

ActionSpace harsh_space() {
  return ActionSpace({0.02f, 1.0f}, {0.3f, 1.0f}, {3, 16});
}

// The protocol written out: one block, one arm, one step after the other.
double by_hand(const BlockDataset& data, int64_t block, const Action& action,
               const ProtocolOptions& options) {
  FakeModel model;
  const auto ids = data.block(block);
  auto sequence = model.create(options.sequence);
  std::vector<ExtendItem> extend(1);
  extend[0].sequence = sequence.get();
  extend[0].tokens = ids.first(static_cast<size_t>(options.context));
  model.extend(extend, {});
  double nll = 0;
  for (int t = 1; t <= options.horizon; ++t) {
    float log_prob = 0;
    DecodeItem item;
    item.sequence = sequence.get();
    item.token = ids[static_cast<size_t>(options.context + t - 1)];
    item.action = action;
    item.out.target = ids[static_cast<size_t>(options.context + t)];
    item.out.log_prob = &log_prob;
    model.decode(std::span(&item, 1));
    nll -= static_cast<double>(log_prob);
  }
  return nll;
}

TEST(EvaluateArms, FollowsTheProtocol) {
  const ProtocolOptions options = small_protocol();
  const BlockDataset data = fake_blocks(5, options);
  const Action action{0.5f, 0.7f, 8};
  const auto constant = make_constant_policy(action);
  const auto dense = make_constant_policy(Action{});
  const std::vector<Arm> arms{{dense.get(), {}, 0}, {constant.get(), {}, 0}};
  FakeModel model;
  const std::vector<int64_t> blocks{3, 0, 4};
  const auto results = evaluate_arms(model, data, blocks, arms, options);
  ASSERT_EQ(results.size(), 2u);
  for (size_t b = 0; b < blocks.size(); ++b) {
    EXPECT_DOUBLE_EQ(results[0][b].nll, by_hand(data, blocks[b], Action{}, options));
    EXPECT_DOUBLE_EQ(results[1][b].nll, by_hand(data, blocks[b], action, options));
    EXPECT_EQ(results[1][b].steps, options.horizon);
    EXPECT_EQ(results[1][b].effective_steps, options.horizon);
    EXPECT_FLOAT_EQ(results[1][b].realised.kappa, 0.5f);
    EXPECT_FLOAT_EQ(results[1][b].realised.rho, 0.7f);
    EXPECT_FLOAT_EQ(results[1][b].realised.eta, 0.5f);
    EXPECT_DOUBLE_EQ(results[1][b].attended, 0.75);
    EXPECT_TRUE(results[1][b].actions.empty());
  }
  EXPECT_EQ(model.prefilled, 3 * options.context);  // once for both arms
  double nll = 0;
  for (const auto& result : results[1]) nll += result.nll;
  EXPECT_DOUBLE_EQ(perplexity(results[1]), std::exp(nll / (3 * options.horizon)));
}

RC_GTEST_PROP(EvaluateArms, DoesNotDependOnBatching, ()) {
  const ProtocolOptions options = small_protocol();
  const BlockDataset data = fake_blocks(11, options);
  const auto fixed = make_fixed_policy(harsh_space());
  const auto matched = make_random_matched_policy(harsh_space(), 5);
  const auto uniform = make_random_uniform_policy(harsh_space(), 5);
  const auto arms_count = *rc::gen::inRange<size_t>(1, 20);
  std::vector<Arm> arms;
  for (size_t i = 0; i < arms_count; ++i) {
    const auto share = [] { return static_cast<float>(*rc::gen::inRange(0, 101)) / 100.0f; };
    const Policy* policy = i % 3 == 0 ? fixed.get() : i % 3 == 1 ? matched.get() : uniform.get();
    arms.push_back({policy, {share(), share(), share()}, static_cast<uint32_t>(i)});
  }
  const auto indices = first_blocks(*rc::gen::inRange<int64_t>(1, 12));
  ProtocolOptions small = options, large = options;
  small.batch = *rc::gen::inRange(1, 40);
  large.batch = 1000;
  FakeModel one, other;
  const auto a = evaluate_arms(one, data, indices, arms, small, true);
  const auto b = evaluate_arms(other, data, indices, arms, large, true);
  RC_ASSERT(one.largest_batch <= static_cast<size_t>(small.batch));
  for (size_t arm = 0; arm < arms.size(); ++arm)
    for (size_t block = 0; block < indices.size(); ++block) {
      RC_ASSERT(a[arm][block].actions == b[arm][block].actions);
      RC_ASSERT(a[arm][block].nll == b[arm][block].nll);
      RC_ASSERT(a[arm][block].realised == b[arm][block].realised);
      RC_ASSERT(a[arm][block].log_probs == b[arm][block].log_probs);
    }
}

TEST(BlockEvaluator, KeepsPrefixesWithinItsMemory) {
  const ProtocolOptions options = small_protocol();
  const BlockDataset data = fake_blocks(10, options);
  const auto fixed = make_fixed_policy(harsh_space());
  const std::vector<Arm> arms{{fixed.get(), {0.5f, 0.6f, 0.7f}, 0}};
  const uint64_t bytes_each = 20 * 16;  // of the fake model's prefix
  FakeModel model;
  BlockEvaluator evaluator(model, data, first_blocks(10), options, 4 * bytes_each);
  const auto first = evaluator.run(arms, true);
  EXPECT_EQ(model.prefilled, 10 * options.context);
  const auto second = evaluator.run(arms, true);
  EXPECT_EQ(model.prefilled, 16 * options.context);  // four of ten were still there
  for (size_t b = 0; b < 10; ++b) {
    EXPECT_EQ(first[0][b].nll, second[0][b].nll);
    EXPECT_EQ(first[0][b].actions, second[0][b].actions);
  }
}

TEST(BlockEvaluator, TheSurprisalIsOfTheBlocksOwnTokens) {
  const auto model = load_model(test::test_data() / "golden" / "tiny_untied_f32",
                                {.precision = Precision::f32, .deterministic = true});
  const ProtocolOptions options = small_protocol();
  const BlockDataset data = fake_blocks(2, options);
  const auto fixed = make_fixed_policy(harsh_space());
  const test::SurprisedPolicy surprised(harsh_space(), 5.8f);
  const auto steps = static_cast<size_t>(options.horizon),
             context = static_cast<size_t>(options.context);
  BlockEvaluator evaluator(*model, data, {1}, options, 1 << 30);
  evaluator.run(std::vector<Arm>{{fixed.get(), {0.5f, 0.6f, 0.7f}, 0}}, true);
  // The prefix is kept, and lacks what this policy asks for.
  const auto result = evaluator.run(std::vector<Arm>{{&surprised, {}, 0}}, true)[0][0];
  ASSERT_EQ(surprised.seen.size(), steps);
  float first = 0;
  auto sequence = model->create(options.sequence);
  ExtendItem item{sequence.get(), data.block(1).first(context), {}};
  item.wanted.push_back({context - 1, {.target = data.block(1)[context], .log_prob = &first}});
  model->extend({&item, 1});
  EXPECT_EQ(surprised.seen[0], -first);
  for (size_t t = 1; t < steps; ++t) EXPECT_EQ(surprised.seen[t], -result.log_probs[t - 1]) << t;
  EXPECT_GT(std::set(result.actions.begin(), result.actions.end()).size(), 1u);
}

TEST(EvaluateArms, KeepsActionsAndLogProbabilitiesOnRequest) {
  const ProtocolOptions options = small_protocol();
  const BlockDataset data = fake_blocks(2, options);
  const auto policy = make_random_uniform_policy(harsh_space(), 1);
  const std::vector<Arm> arms{{policy.get(), {}, 3}};
  FakeModel model;
  const auto results = evaluate_arms(model, data, first_blocks(2), arms, options, true);
  for (const BlockResult& result : results[0]) {
    ASSERT_EQ(result.actions.size(), 8u);
    ASSERT_EQ(result.log_probs.size(), 8u);
    double nll = 0;
    for (const float value : result.log_probs) nll -= static_cast<double>(value);
    EXPECT_DOUBLE_EQ(nll, result.nll);
  }
}

// Steps with few keys run dense and do not count.
TEST(EvaluateArms, LeavesStepsThatAreNotEffectiveOut) {
  ProtocolOptions options = small_protocol();
  options.context = 5;
  options.sequence.sinks = 4;
  options.sequence.window = 4;  // effective from 10 keys on: steps 5..8
  const BlockDataset data = fake_blocks(1, options);
  const auto policy = make_constant_policy({0.5f, 1.0f, 16});
  const std::vector<Arm> arms{{policy.get(), {}, 0}};
  FakeModel model;
  const auto results = evaluate_arms(model, data, first_blocks(1), arms, options, true);
  EXPECT_EQ(results[0][0].steps, 8);
  EXPECT_EQ(results[0][0].effective_steps, 4);
  EXPECT_FLOAT_EQ(results[0][0].realised.kappa, 0.5f);
  EXPECT_EQ(results[0][0].actions, (std::vector<int>{1, 1, 1, 1, 0, 0, 0, 0}));
  EXPECT_DOUBLE_EQ(results[0][0].attended, (4 * 1.0 + 4 * 0.75) / 8);
}

TEST(EvaluateArms, ReportsProgress) {
  ProtocolOptions options = small_protocol();
  options.batch = 3;
  const BlockDataset data = fake_blocks(10, options);
  const auto policy = make_constant_policy(Action{});
  const std::vector<Arm> arms(4, Arm{policy.get(), {}, 0});
  FakeModel model;
  std::vector<int64_t> seen;
  evaluate_arms(model, data, first_blocks(10), arms, options, false,
                [&](int64_t done, int64_t total) {
                  EXPECT_EQ(total, 10);
                  seen.push_back(done);
                });
  EXPECT_TRUE(std::is_sorted(seen.begin(), seen.end()));
  EXPECT_EQ(seen.back(), 10);
}

TEST(EvaluateArms, StopsWhenAsked) {
  const ProtocolOptions options = small_protocol();
  const BlockDataset data = fake_blocks(10, options);
  const auto policy = make_constant_policy(Action{});
  const std::vector<Arm> arms{{policy.get(), {}, 0}};
  FakeModel model;
  std::stop_source source;
  EXPECT_THROW(evaluate_arms(
                   model, data, first_blocks(10), arms, options, false,
                   [&](int64_t, int64_t) { source.request_stop(); }, source.get_token()),
               Cancelled);
  EXPECT_LT(model.decoded, 10 * options.horizon);
}

std::string message_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(EvaluateArms, NamesWhatIsWrong) {
  using testing::HasSubstr;
  const ProtocolOptions options = small_protocol();
  const BlockDataset data = fake_blocks(3, options);
  const auto policy = make_fixed_policy(harsh_space());
  const auto run = [&](Budget budget, std::vector<int64_t> blocks, FakeModel& model,
                       const ProtocolOptions& protocol) {
    return message_of([&] {
      const std::vector<Arm> arms{{policy.get(), budget, 0}};
      evaluate_arms(model, data, blocks, arms, protocol);
    });
  };
  FakeModel model;
  EXPECT_THAT(run({1.5f, 1, 1}, {0}, model, options), HasSubstr("κ"));
  EXPECT_THAT(run({1, -0.1f, 1}, {0}, model, options), HasSubstr("ρ"));
  EXPECT_THAT(run({1, 1, NAN}, {0}, model, options), HasSubstr("η"));
  EXPECT_THAT(run({}, {3}, model, options), HasSubstr("block 3"));
  EXPECT_THAT(run({}, {}, model, options), HasSubstr("no block"));
  ProtocolOptions other = options;
  other.horizon = 9;
  EXPECT_THAT(run({}, {0}, model, other), HasSubstr("30"));
  FakeModel shorter(27);
  EXPECT_THAT(run({}, {0}, shorter, options), HasSubstr("28 positions"));
  FakeModel just_enough(28);
  EXPECT_EQ(run({}, {0}, just_enough, options), "no error");
  model.broken = true;
  EXPECT_THAT(run({}, {2}, model, options), HasSubstr("block 2, step 1"));
}

}  // namespace
}  // namespace sol
