#include "evaluation/sweep_summary.h"

#include <algorithm>
#include <cmath>

#include "base/fail.h"

namespace sol {

std::string_view to_string(Scope scope) {
  return scope == Scope::inside ? "inside" : scope == Scope::frugal ? "net<=0.6" : "all";
}

namespace {

Comparison compare(const Sweep& sweep, const std::vector<const SweepPoint*>& points,
                   size_t baseline, Matching matching, uint64_t seed, int draws) {
  std::vector<double> policy, other;
  std::vector<PointBlocks> blocks;
  for (const SweepPoint* point : points) {
    const Outcome& outcome = point->baselines(matching)[baseline];
    policy.push_back(point->policy.perplexity);
    other.push_back(outcome.perplexity);
    blocks.push_back({point->policy.nll, outcome.nll});
  }
  Comparison comparison;
  comparison.baseline = sweep.baselines[baseline];
  comparison.matching = matching;
  comparison.test = paired_test(policy, other);
  comparison.interval = bootstrap_difference(blocks, sweep.protocol.horizon, seed, draws);
  return comparison;
}

std::array<double, 3> errors(const SweepPoint& point) {
  const auto difference = [](float a, float b) {
    return std::abs(static_cast<double>(a) - static_cast<double>(b));
  };
  const Budget &realised = point.policy.realised, &requested = point.requested;
  if (point.policy.asked_time)
    return {std::abs(point.policy.time - static_cast<double>(requested.kappa)), 0, 0};
  return {difference(realised.kappa, requested.kappa), difference(realised.rho, requested.rho),
          difference(realised.eta, requested.eta)};
}

Adherence adherence(const std::vector<const SweepPoint*>& points, Scope scope) {
  // Averages are float32: a difference of just the tolerance must not fail by its last bit.
  const double limit = Adherence::tolerance + 1e-6;
  Adherence result;
  result.scope = scope;
  result.points = static_cast<int64_t>(points.size());
  result.by_time = points.front()->policy.asked_time;
  const auto n = static_cast<double>(points.size());
  std::array<int64_t, 3> met{};
  int64_t all_met = 0;
  for (const SweepPoint* point : points) {
    const auto error = errors(*point);
    for (size_t axis = 0; axis < error.size(); ++axis) {
      met[axis] += error[axis] <= limit ? 1 : 0;
      result.mean_error[axis] += error[axis] / n;
      result.largest_error[axis] = std::max(result.largest_error[axis], error[axis]);
    }
    all_met += *std::max_element(error.begin(), error.end()) <= limit ? 1 : 0;
  }
  for (size_t axis = 0; axis < met.size(); ++axis)
    result.share[axis] = static_cast<double>(met[axis]) / n;
  result.all_axes_share = static_cast<double>(all_met) / n;
  return result;
}

template <typename Pick>
std::vector<size_t> frontier_of(const Sweep& sweep, const Pick& pick) {
  std::vector<double> x, y;
  for (const SweepPoint& point : sweep.points) {
    const Outcome& outcome = pick(point);
    x.push_back(outcome.net_keep);
    y.push_back(outcome.perplexity);
  }
  return pareto_frontier(x, y);
}

}  // namespace

const Comparison* SweepSummary::find(std::string_view baseline, Matching matching,
                                     Scope scope) const {
  for (const Comparison& comparison : comparisons)
    if (comparison.baseline == baseline && comparison.matching == matching &&
        comparison.scope == scope)
      return &comparison;
  return nullptr;
}

bool any_outside(const Sweep& sweep) {
  return std::any_of(sweep.points.begin(), sweep.points.end(),
                     [](const SweepPoint& point) { return !point.inside; });
}

std::vector<const SweepPoint*> points_of(const Sweep& sweep, Scope scope) {
  std::vector<const SweepPoint*> points;
  for (const SweepPoint& point : sweep.points) {
    const bool frugal = point.policy.net_keep <= frugal_net_keep;
    if (scope == Scope::all || (point.inside && (scope == Scope::inside || frugal)))
      points.push_back(&point);
  }
  return points;
}

SweepSummary summarise(const Sweep& sweep, uint64_t seed, int bootstrap_draws) {
  if (sweep.points.empty()) fail("a sweep without points has no summary");
  SweepSummary summary;
  summary.seed = seed;
  summary.bootstrap_draws = bootstrap_draws;
  for (const Matching matching : {Matching::realised, Matching::requested}) {
    for (const Scope scope : {Scope::inside, Scope::frugal, Scope::all}) {
      const auto points = points_of(sweep, scope);
      if (points.empty()) continue;
      for (size_t b = 0; b < points.front()->baselines(matching).size(); ++b) {
        Comparison comparison = compare(sweep, points, b, matching, seed, bootstrap_draws);
        comparison.scope = scope;
        summary.comparisons.push_back(std::move(comparison));
      }
    }
  }
  for (const Scope scope : {Scope::inside, Scope::all}) {
    const auto points = points_of(sweep, scope);
    if (!points.empty()) summary.adherence.push_back(adherence(points, scope));
  }
  summary.policy_frontier =
      frontier_of(sweep, [](const SweepPoint& point) -> const Outcome& { return point.policy; });
  for (const Matching matching : {Matching::realised, Matching::requested}) {
    auto& frontiers =
        matching == Matching::realised ? summary.realised_frontiers : summary.requested_frontiers;
    for (size_t b = 0; b < sweep.points.front().baselines(matching).size(); ++b)
      frontiers.push_back(frontier_of(sweep, [&](const SweepPoint& point) -> const Outcome& {
        return point.baselines(matching)[b];
      }));
  }
  return summary;
}

std::vector<FrontierPoint> validation_frontier(const Sweep& sweep) {
  std::vector<double> net_keep, perplexity;
  std::vector<const SweepPoint*> inside = points_of(sweep, Scope::inside);
  if (inside.empty()) fail("no point of the sweep lies inside the controller's trained ranges");
  for (const SweepPoint* point : inside) {
    net_keep.push_back(point->policy.net_keep);
    perplexity.push_back(point->policy.perplexity);
  }
  std::vector<FrontierPoint> frontier;
  for (const size_t i : pareto_frontier(net_keep, perplexity))
    frontier.push_back({net_keep[i], inside[i]->requested, perplexity[i]});
  return frontier;
}

std::vector<FrontierPoint> dial_frontier(const Sweep& sweep) {
  std::vector<FrontierPoint> frontier = validation_frontier(sweep);
  const auto inside = points_of(sweep, Scope::inside);
  const SweepPoint& most = **std::ranges::max_element(
      inside, {}, [](const SweepPoint* point) { return point->policy.net_keep; });
  if (most.policy.net_keep > frontier.back().net_keep)
    frontier.push_back({most.policy.net_keep, most.requested, most.policy.perplexity});
  return frontier;
}

}  // namespace sol
