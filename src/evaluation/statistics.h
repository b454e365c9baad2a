// Statistics of paired comparisons (paper, "Statistical significance of policy gains").
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace sol {

struct MeanDeviation {
  double mean = 0;
  double deviation = 0;  // of the sample (n - 1); 0 for one value
};

// Throws Error for no value at all.
MeanDeviation mean_deviation(std::span<const double> values);

// Paired comparison of a policy with a baseline, lower is better.
struct PairedTest {
  int64_t n = 0;
  MeanDeviation policy, baseline;
  MeanDeviation difference;  // policy - baseline; negative: the policy is better
  double t = 0;              // Student's t of the differences, n - 1 degrees of freedom
  double p = 0;              // one-sided: probability of a t this low were there no difference
  int64_t wins = 0, ties = 0;
  double win_rate = 0;  // share of pairs in which the policy is strictly lower

  double relative() const { return difference.mean / baseline.mean; }
};

// t and p are NaN for fewer than two pairs; without any spread p is 0 where the policy is lower and
// 1 otherwise. Throws Error for spans that differ in length or are empty.
PairedTest paired_test(std::span<const double> policy, std::span<const double> baseline);

// Linear interpolation between order statistics (type 7); q in [0, 1]. Sorts `values`.
double quantile(std::span<double> values, double q);

// Negative log-likelihoods of one comparison point on every block, and the steps they sum over.
struct PointBlocks {
  std::span<const double> policy;    // [blocks], nats summed over a block's steps
  std::span<const double> baseline;  // [blocks]
};

struct Interval {
  double low = 0, high = 0;
  bool operator==(const Interval&) const = default;
};

// Percentile bootstrap over blocks of the mean over points of perplexity(policy) -
// perplexity(baseline): each draw picks as many blocks as there are, with replacement, the same
// ones for every point and both sides. A draw depends on (seed, draw) only. Throws Error when there
// is no point, no block or the lengths differ.
Interval bootstrap_difference(std::span<const PointBlocks> points, int steps_per_block,
                              uint64_t seed, int draws = 2000, double confidence = 0.95);

// Indices of the points that no other beats on both x and y (both lower is better), ascending in
// x, so strictly descending in y. Points that are not finite are left out; of equal ones the first
// stays.
std::vector<size_t> pareto_frontier(std::span<const double> x, std::span<const double> y);

}  // namespace sol
