// A sweep's figures as SVG.
#pragma once

#include <cstdint>
#include <string>

#include "evaluation/sweep_summary.h"

namespace sol {

// What a frontier plot has on its x axis.
using Cost = double (*)(const Outcome&);
double net_keep(const Outcome& outcome);
double milliseconds(const Outcome& outcome);  // per token
double time_share(const Outcome& outcome);    // of the dense time

// "fixed at realised averages".
std::string name_at(const Sweep& sweep, size_t baseline, Matching matching);

// Perplexity against cost: a faint mark for each budget, a line through the Pareto points, a mark
// for dense steps; the policy, and the first `most_baselines` at its realised averages (else at the
// requested budgets).
std::string frontier_plot(const Sweep& sweep, const SweepSummary& summary, Cost cost,
                          const std::string& title, const std::string& x_label, int width = 940,
                          int height = 540, size_t most_baselines = SIZE_MAX);

// Requested against realised averages of one axis.
std::string adherence_plot(const Sweep& sweep, Axis axis);
// Of a policy that is asked for shares of the dense time.
std::string time_adherence_plot(const Sweep& sweep);

}  // namespace sol
