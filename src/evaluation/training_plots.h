// Plots of training runs (training_report.h).
#pragma once

#include <string>
#include <vector>

#include "evaluation/training_report.h"

namespace sol {

// SVG: reward, perplexity, gaps, entropy, clipping, learning rate; one curve a run in each.
std::vector<std::string> training_curves(const std::vector<ReportedRun>& runs);
// What the seconds of a collection went into.
std::string phases_plot(const RunHistory& history);
// Per axis with more than one level, the levels' shares of the steps; nothing where the log has
// no actions.
std::vector<std::string> action_plots(const RunHistory& history);

}  // namespace sol
