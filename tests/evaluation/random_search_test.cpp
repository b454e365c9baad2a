#include "evaluation/random_search.h"

#include <gtest/gtest.h>

#include "fake_model.h"
#include "policy/policies.h"
#include "sol/error.h"

namespace sol {
namespace {

using test::fake_blocks;
using test::FakeModel;
using test::first_blocks;
using test::small_protocol;

struct RandomSearch : testing::Test {
  FakeModel model;
  ProtocolOptions options = small_protocol();
  BlockDataset data = fake_blocks(5, options);
  BlockEvaluator evaluator{model, data, first_blocks(5), options};
  ActionSpace space{{0.02f, 1.0f}, {0.3f, 1.0f}, {3, 16}};
  std::unique_ptr<Policy> fixed = make_fixed_policy(space);
  std::unique_ptr<Policy> matched = make_random_matched_policy(space, 7);
  std::unique_ptr<Policy> uniform = make_random_uniform_policy(space, 7);

  SearchRequest request() {
    SearchRequest result;
    result.policy = fixed.get();
    result.fixed = fixed.get();
    result.random = {matched.get(), uniform.get()};
    result.budgets = {{0.3f, 0.5f, 0.4f}, {0.7f, 0.8f, 0.8f}};
    result.schedules = 6;
    return result;
  }
};

TEST_F(RandomSearch, PlaysEveryScheduleAtTheAveragesThatThePolicyRealised) {
  const auto points = run_random_search(evaluator, request());
  ASSERT_EQ(points.size(), 2u);
  // Each point against the same arms run by hand.
  for (size_t i = 0; i < points.size(); ++i) {
    const SearchPoint& point = points[i];
    const Arm policy{fixed.get(), request().budgets[i], 0};
    const auto played = evaluator.run({&policy, 1});
    EXPECT_EQ(point.realised, mean_realised(played[0]));
    EXPECT_DOUBLE_EQ(point.policy.perplexity, perplexity(played[0]));
    EXPECT_DOUBLE_EQ(point.policy.net_keep, space.net_keep_rate(point.realised));
    ASSERT_EQ(point.random.size(), 2u);
    EXPECT_EQ(point.random[0].policy, "random-matched");
    ASSERT_EQ(point.random[1].schedules.size(), 6u);
    const Arm third{matched.get(), point.realised, static_cast<uint32_t>(6 * i + 2)};
    const auto random = evaluator.run({&third, 1});
    EXPECT_DOUBLE_EQ(point.random[0].schedules[2].perplexity, perplexity(random[0]));
  }
}

TEST_F(RandomSearch, PointsAndExperimentsDrawTheirOwnSchedules) {
  SearchRequest same = request();
  same.budgets = {request().budgets[0], request().budgets[0]};
  const auto points = run_random_search(evaluator, same);
  const auto perplexities = [](const SearchPoint& point) {
    std::vector<double> all;
    for (const ScheduleOutcome& schedule : point.random[0].schedules)
      all.push_back(schedule.perplexity);
    return all;
  };
  EXPECT_NE(perplexities(points[0]), perplexities(points[1]));
  same.first_rollout = 6;
  EXPECT_EQ(perplexities(run_random_search(evaluator, same)[0]), perplexities(points[1]));
}

TEST_F(RandomSearch, ReportsAllOfItsWork) {
  int64_t last = 0, total = 0;
  run_random_search(evaluator, request(), [&](int64_t done, int64_t all) {
    EXPECT_GE(done, last);
    last = done;
    total = all;
  });
  EXPECT_EQ(last, total);
  EXPECT_EQ(total, 5 * 2 * (2 + 2 * 6));
}

TEST_F(RandomSearch, CountsStrictlyBetterSchedules) {
  const RandomSchedules random{"random-matched", {{0.5, 3}, {0.5, 2}, {0.5, 4}}};
  EXPECT_EQ(better_than(random, 3), 1);
  EXPECT_EQ(better_than(random, 2), 0);
  EXPECT_EQ(better_than(random, 9), 3);
  EXPECT_EQ(random.best().perplexity, 2);
}

TEST_F(RandomSearch, RefusesWhatCannotBeRun) {
  SearchRequest none = request();
  none.policy = nullptr;
  EXPECT_THROW(run_random_search(evaluator, none), Error);
  none = request();
  none.budgets.clear();
  EXPECT_THROW(run_random_search(evaluator, none), Error);
  none = request();
  none.schedules = 0;
  EXPECT_THROW(run_random_search(evaluator, none), Error);
}

}  // namespace
}  // namespace sol
