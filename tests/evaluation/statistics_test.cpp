#include "evaluation/statistics.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>

#include "sol/error.h"

namespace sol {
namespace {

TEST(MeanDeviation, IsTheSamples) {
  const std::vector<double> values{2, 4, 4, 4, 5, 5, 7, 9};
  const MeanDeviation result = mean_deviation(values);
  EXPECT_DOUBLE_EQ(result.mean, 5);
  EXPECT_NEAR(result.deviation, std::sqrt(32.0 / 7), 1e-12);
  EXPECT_EQ(mean_deviation(std::vector<double>{3.5}).deviation, 0);
  EXPECT_THROW(mean_deviation({}), Error);
}

// Student's own example (1908; Cushny and Peebles' hours of sleep gained under two drugs): t =
// -4.0621 with 9 degrees of freedom, two-sided p 0.002833.
TEST(PairedTest, AgreesWithStudentsSleepData) {
  const std::vector<double> first{0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0};
  const std::vector<double> second{1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4};
  const PairedTest test = paired_test(first, second);
  EXPECT_EQ(test.n, 10);
  EXPECT_NEAR(test.difference.mean, -1.58, 1e-12);
  EXPECT_NEAR(test.difference.deviation, 1.229995, 1e-6);
  EXPECT_NEAR(test.t, -4.062128, 1e-6);
  EXPECT_NEAR(test.p, 0.002832890 / 2, 1e-8);
  EXPECT_EQ(test.wins, 9);
  EXPECT_EQ(test.ties, 1);
  EXPECT_DOUBLE_EQ(test.win_rate, 0.9);
  // The other way around it is the other tail.
  EXPECT_NEAR(paired_test(second, first).p, 1 - 0.002832890 / 2, 1e-8);
}

TEST(PairedTest, KeepsVerySmallProbabilities) {
  std::vector<double> policy, baseline;
  for (int i = 0; i < 500; ++i) {
    policy.push_back(10 + 0.01 * (i % 7));
    baseline.push_back(10.05 + 0.01 * (i % 5));
  }
  const PairedTest test = paired_test(policy, baseline);
  EXPECT_GT(test.p, 0);
  EXPECT_LT(test.p, 1e-50);
}

TEST(PairedTest, WithoutSpreadOrPairs) {
  const std::vector<double> low{1, 2}, high{2, 3}, one{1}, two{2};
  EXPECT_EQ(paired_test(low, high).p, 0);
  EXPECT_EQ(paired_test(high, low).p, 1);
  EXPECT_EQ(paired_test(low, low).p, 1);
  EXPECT_EQ(paired_test(low, low).t, 0);
  EXPECT_TRUE(std::isnan(paired_test(one, two).p));
  EXPECT_EQ(paired_test(one, two).win_rate, 1);
  EXPECT_THROW(paired_test(low, one), Error);
  EXPECT_THROW(paired_test({}, {}), Error);
}

TEST(Quantile, InterpolatesBetweenOrderStatistics) {
  std::vector<double> values{4, 1, 3, 2};
  EXPECT_DOUBLE_EQ(quantile(values, 0), 1);
  EXPECT_DOUBLE_EQ(quantile(values, 1), 4);
  EXPECT_DOUBLE_EQ(quantile(values, 0.5), 2.5);
  EXPECT_DOUBLE_EQ(quantile(values, 0.25), 1.75);
  std::vector<double> one{7};
  EXPECT_DOUBLE_EQ(quantile(one, 0.3), 7);
}

struct Nlls {
  std::vector<std::vector<double>> policy, baseline;
  std::vector<PointBlocks> points() const {
    std::vector<PointBlocks> result;
    for (size_t i = 0; i < policy.size(); ++i) result.push_back({policy[i], baseline[i]});
    return result;
  }
};

// Baselines that are `gap` nats a token worse, blocks of very different difficulty.
Nlls nlls(int points, int blocks, int steps, double gap, double noise) {
  Nlls result;
  for (int p = 0; p < points; ++p) {
    std::vector<double> policy, baseline;
    for (int b = 0; b < blocks; ++b) {
      const double difficulty = 2 + 0.5 * std::sin(12.9898 * b);
      policy.push_back(steps * (difficulty + 0.001 * p));
      baseline.push_back(policy.back() + steps * (gap + noise * std::sin(78.233 * b + p)));
    }
    result.policy.push_back(policy);
    result.baseline.push_back(baseline);
  }
  return result;
}

TEST(Bootstrap, IsAFunctionOfItsSeed) {
  const Nlls data = nlls(5, 40, 16, 0.02, 0.05);
  const Interval first = bootstrap_difference(data.points(), 16, 1, 500);
  EXPECT_EQ(first, bootstrap_difference(data.points(), 16, 1, 500));
  EXPECT_NE(first, bootstrap_difference(data.points(), 16, 2, 500));
}

TEST(Bootstrap, SurroundsTheDifferenceAndPairsTheBlocks) {
  const Nlls clear = nlls(5, 40, 16, 0.02, 0.001);
  const Interval interval = bootstrap_difference(clear.points(), 16, 0);
  double difference = 0;
  for (size_t p = 0; p < clear.policy.size(); ++p) {
    double policy = 0, baseline = 0;
    for (size_t b = 0; b < 40; ++b) {
      policy += clear.policy[p][b] / (40 * 16);
      baseline += clear.baseline[p][b] / (40 * 16);
    }
    difference += (std::exp(policy) - std::exp(baseline)) / 5;
  }
  EXPECT_LT(interval.low, difference);
  EXPECT_GT(interval.high, difference);
  // Blocks differ far more than the gap: only pairing keeps the interval this narrow.
  EXPECT_LT(interval.high, 0);
  const Nlls noisy = nlls(5, 40, 16, 0.0, 0.3);
  const Interval unclear = bootstrap_difference(noisy.points(), 16, 0);
  EXPECT_LT(unclear.low, 0);
  EXPECT_GT(unclear.high, 0);
}

// With one point whose difference of perplexities is nearly linear in the blocks' differences, the
// interval must be close to the normal approximation.
TEST(Bootstrap, AgreesWithTheNormalApproximation) {
  std::vector<double> policy, baseline;
  const int blocks = 400;
  std::vector<double> differences;
  for (int b = 0; b < blocks; ++b) {
    const double difference = 1e-3 * std::sin(3.7 * b + 0.1 * b * b);
    policy.push_back(difference);
    baseline.push_back(0);
    differences.push_back(difference);
  }
  const MeanDeviation spread = mean_deviation(differences);
  const double half = 1.96 * spread.deviation / std::sqrt(blocks);
  const std::vector<PointBlocks> points{{policy, baseline}};
  const Interval interval = bootstrap_difference(points, 1, 3, 4000);
  EXPECT_NEAR(interval.low, spread.mean - half, 0.1 * half);
  EXPECT_NEAR(interval.high, spread.mean + half, 0.1 * half);
}

TEST(Bootstrap, RejectsWhatItCannotResample) {
  const std::vector<double> three{1, 2, 3}, two{1, 2};
  EXPECT_THROW(bootstrap_difference({}, 16, 0), Error);
  EXPECT_THROW(bootstrap_difference(std::vector<PointBlocks>{{three, two}}, 16, 0), Error);
  EXPECT_THROW(bootstrap_difference(std::vector<PointBlocks>{{{}, {}}}, 16, 0), Error);
  EXPECT_THROW(bootstrap_difference(std::vector<PointBlocks>{{two, two}}, 0, 0), Error);
}

TEST(Pareto, KeepsTheLowerLeftEdge) {
  const std::vector<double> x{0.5, 0.3, 0.7, 0.3, 0.9, 0.6, 0.5};
  const std::vector<double> y{10., 12., 9.0, 13., 9.5, 11., 10.};
  EXPECT_EQ(pareto_frontier(x, y), (std::vector<size_t>{1, 0, 2}));
  EXPECT_TRUE(pareto_frontier({}, {}).empty());
  const std::vector<double> bad{0.1, NAN}, good{NAN, 1};
  EXPECT_TRUE(pareto_frontier(bad, good).empty());
}

RC_GTEST_PROP(Pareto, IsMonotoneAndUnbeaten, ()) {
  const auto pairs = *rc::gen::container<std::vector<std::pair<int, int>>>(
      rc::gen::pair(rc::gen::inRange(0, 20), rc::gen::inRange(0, 20)));
  std::vector<double> x, y;
  for (const auto& [a, b] : pairs) {
    x.push_back(a);
    y.push_back(b);
  }
  const auto frontier = pareto_frontier(x, y);
  RC_ASSERT(frontier.empty() == pairs.empty());
  for (size_t i = 1; i < frontier.size(); ++i) {
    RC_ASSERT(x[frontier[i - 1]] < x[frontier[i]]);
    RC_ASSERT(y[frontier[i - 1]] > y[frontier[i]]);
  }
  // Every point is met or beaten by one of the frontier, and none of the frontier is beaten.
  for (size_t i = 0; i < x.size(); ++i) {
    bool covered = false;
    for (const size_t f : frontier) {
      covered = covered || (x[f] <= x[i] && y[f] <= y[i]);
      const bool beats = x[i] <= x[f] && y[i] <= y[f] && (x[i] < x[f] || y[i] < y[f]);
      RC_ASSERT(!beats);
    }
    RC_ASSERT(covered);
  }
}

}  // namespace
}  // namespace sol
