// What a sweep shows: paired comparisons, budget adherence, Pareto frontiers.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "evaluation/sweep.h"
#include "sol/controller.h"

namespace sol {

// Which points of the grid a figure is about: those inside the trained ranges, of these the ones at
// which the policy spent a net keep-rate of frugal_net_keep at most, or all.
enum class Scope { inside, frugal, all };
inline constexpr double frugal_net_keep = 0.6;
std::string_view to_string(Scope scope);
std::vector<const SweepPoint*> points_of(const Sweep& sweep, Scope scope);

// One row of the paired tables.
struct Comparison {
  std::string baseline;
  Matching matching = Matching::realised;
  Scope scope = Scope::inside;
  PairedTest test;    // perplexities over points
  Interval interval;  // 95 %, of the mean difference, by bootstrap over blocks
};

// How well realised averages meet requests, over the points of one scope.
struct Adherence {
  static constexpr double tolerance = 0.05;
  Scope scope = Scope::inside;
  int64_t points = 0;
  bool by_time = false;  // requests are shares of the dense time: the first number of each three
  double all_axes_share = 0;           // every axis within the tolerance
  std::array<double, 3> share{};       // per axis
  std::array<double, 3> mean_error{};  // of |realised - requested|
  std::array<double, 3> largest_error{};
};

struct SweepSummary {
  std::vector<Comparison> comparisons;  // by matching, scope, baseline; none for an empty scope
  std::vector<Adherence> adherence;     // none for an empty scope
  std::vector<size_t> policy_frontier;  // indices of points
  std::vector<std::vector<size_t>> realised_frontiers;  // per baseline, at realised averages
  std::vector<std::vector<size_t>> requested_frontiers;
  uint64_t seed = 0;
  int bootstrap_draws = 0;

  const Comparison* find(std::string_view baseline, Matching matching, Scope scope) const;
};

// Whether the scopes differ, so that tables need both.
bool any_outside(const Sweep& sweep);

SweepSummary summarise(const Sweep& sweep, uint64_t seed, int bootstrap_draws = 2000);

// The points inside the trained ranges that no other beats on both net keep-rate and perplexity,
// ascending in net keep-rate: a controller's validation frontier. Throws Error when there is no
// point inside.
std::vector<FrontierPoint> validation_frontier(const Sweep& sweep);

// What a controller stores to turn one number into budgets: these, and above them the point that
// spends most, should it lie higher. One may ask for it, though it is no better.
std::vector<FrontierPoint> dial_frontier(const Sweep& sweep);

}  // namespace sol
