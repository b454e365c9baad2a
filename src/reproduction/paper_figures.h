// The paper's own figures, to stand beside ours.
#pragma once

#include <string>

#include "sol/action_space.h"

namespace sol {

// Of its table of paired comparisons: the policy against fixed budgets at the requested averages.
// On Llama-3.2-1B, but for controllers that bear another model's name.
struct PaperComparison {
  double relative;  // difference of the mean perplexities to fixed's; negative is better
  double win_rate;  // share of the budgets
};

// Null for a controller that the paper does not have, also one of that name with other levels.
const PaperComparison* paper_comparison(const std::string& controller, const ActionSpace& space);

// Where its policy was at least as good as the best random schedule, which it draws uniformly.
inline constexpr const char* paper_search = "8 of 12";  // 500 schedules, four points of 3 spaces
inline constexpr const char* paper_single = "7 of 9";   // 30 schedules, nine single-axis settings

}  // namespace sol
