// A sweep's statistics as HTML.
#pragma once

#include <string>

#include "evaluation/sweep_summary.h"

namespace sol {

// One sentence on the first baseline; empty without one, and for one that does not follow budgets.
std::string verdict(const Sweep& sweep, const SweepSummary& summary);
// Not of baselines that spend the same at every budget: these have no averages but their own.
bool compared_at_equal_averages(const Comparison& row);
// Empty where no baseline was asked for so.
std::string paired_table(const Sweep& sweep, const SweepSummary& summary, Matching matching);
std::string adherence_table(const Sweep& sweep, const SweepSummary& summary);

}  // namespace sol
