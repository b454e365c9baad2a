// A sweep as one self-contained page of HTML with inline SVG.
#pragma once

#include <string>

#include "evaluation/sweep_files.h"

namespace sol {

// Sections: verdict, perplexity against net keep-rate, requested against realised budgets, paired
// comparisons, budget adherence, settings. All text is escaped; nothing is loaded from elsewhere.
std::string sweep_report(const Sweep& sweep, const SweepSummary& summary,
                         const SweepSettings& settings);

}  // namespace sol
