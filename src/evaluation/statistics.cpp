#include "evaluation/statistics.h"

#include <algorithm>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/fail.h"
#include "base/random.h"
#include "base/threads.h"

namespace sol {

MeanDeviation mean_deviation(std::span<const double> values) {
  if (values.empty()) fail("mean of no value at all");
  const auto n = static_cast<double>(values.size());
  const double mean = std::accumulate(values.begin(), values.end(), 0.0) / n;
  if (values.size() == 1) return {mean, 0.0};
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  return {mean, std::sqrt(squares / (n - 1))};
}

PairedTest paired_test(std::span<const double> policy, std::span<const double> baseline) {
  if (policy.size() != baseline.size())
    fail("paired test of {} values with {}", policy.size(), baseline.size());
  PairedTest test;
  test.n = static_cast<int64_t>(policy.size());
  test.policy = mean_deviation(policy);
  test.baseline = mean_deviation(baseline);
  std::vector<double> differences(policy.size());
  for (size_t i = 0; i < policy.size(); ++i) {
    differences[i] = policy[i] - baseline[i];
    if (differences[i] < 0) ++test.wins;
    if (differences[i] == 0) ++test.ties;
  }
  test.win_rate = static_cast<double>(test.wins) / static_cast<double>(test.n);
  test.difference = mean_deviation(differences);
  if (test.n < 2) {
    test.t = test.p = std::numeric_limits<double>::quiet_NaN();
    return test;
  }
  if (test.difference.deviation == 0) {
    const double mean = test.difference.mean;
    test.t = mean == 0 ? 0 : std::copysign(std::numeric_limits<double>::infinity(), mean);
    test.p = mean < 0 ? 0 : 1;
    return test;
  }
  const auto n = static_cast<double>(test.n);
  test.t = test.difference.mean / (test.difference.deviation / std::sqrt(n));
  const boost::math::students_t distribution(n - 1);
  test.p = boost::math::cdf(distribution, test.t);
  return test;
}

double quantile(std::span<double> values, double q) {
  if (values.empty()) fail("quantile of no value at all");
  std::sort(values.begin(), values.end());
  const double position = q * static_cast<double>(values.size() - 1);
  const auto below = static_cast<size_t>(std::floor(position));
  const size_t above = std::min(below + 1, values.size() - 1);
  return values[below] + (position - std::floor(position)) * (values[above] - values[below]);
}

Interval bootstrap_difference(std::span<const PointBlocks> points, int steps_per_block,
                              uint64_t seed, int draws, double confidence) {
  if (points.empty()) fail("bootstrap over no point at all");
  const size_t blocks = points.front().policy.size();
  if (blocks == 0) fail("bootstrap over no block at all");
  for (const PointBlocks& point : points)
    if (point.policy.size() != blocks || point.baseline.size() != blocks)
      fail("bootstrap: a point has {} and {} blocks, the first one {}", point.policy.size(),
           point.baseline.size(), blocks);
  if (draws < 1 || steps_per_block < 1 || !(confidence > 0 && confidence < 1))
    fail("bootstrap with {} draws, {} steps a block, confidence {}", draws, steps_per_block,
         confidence);

  const double total_steps = static_cast<double>(blocks) * steps_per_block;
  std::vector<double> means(static_cast<size_t>(draws));
  parallel_for(draws, [&](int64_t draw) {
    Random random({.seed = seed,
                   .stream = RandomStream::bootstrap,
                   .block = 0,
                   .rollout = static_cast<uint32_t>(draw),
                   .step = 0});
    std::vector<double> times(blocks, 0.0);
    for (size_t i = 0; i < blocks; ++i) times[random.below(static_cast<uint32_t>(blocks))] += 1;
    double sum = 0;
    for (const PointBlocks& point : points) {
      double policy = 0, baseline = 0;
      for (size_t i = 0; i < blocks; ++i) {
        policy += times[i] * point.policy[i];
        baseline += times[i] * point.baseline[i];
      }
      sum += std::exp(policy / total_steps) - std::exp(baseline / total_steps);
    }
    means[static_cast<size_t>(draw)] = sum / static_cast<double>(points.size());
  });
  const double tail = (1 - confidence) / 2;
  return {quantile(means, tail), quantile(means, 1 - tail)};
}

std::vector<size_t> pareto_frontier(std::span<const double> x, std::span<const double> y) {
  if (x.size() != y.size()) fail("Pareto frontier of {} x values with {} y", x.size(), y.size());
  std::vector<size_t> order;
  for (size_t i = 0; i < x.size(); ++i)
    if (std::isfinite(x[i]) && std::isfinite(y[i])) order.push_back(i);
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return x[a] != x[b] ? x[a] < x[b] : y[a] < y[b]; });
  std::vector<size_t> frontier;
  double best = std::numeric_limits<double>::infinity();
  for (const size_t i : order) {
    if (y[i] >= best) continue;
    best = y[i];
    frontier.push_back(i);
  }
  return frontier;
}

}  // namespace sol
