// Grids of requested budgets.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sol/action_space.h"
#include "sol/controller.h"

namespace sol {

// Values of one axis in the units that a user types: shares, or bits for η.
using AxisValues = std::vector<double>;

// "0.1:0.9:0.2" (from, to, step; the end is included when a step lands on it) or "0.2,0.5,0.8", or
// one value. `axis` is what messages call it. Throws Error naming the faulty part.
AxisValues parse_axis_values(std::string_view text, const std::string& axis);

// The paper's grid: κ 0.15..0.95 by 0.1, ρ 0.4..1.0 by 0.1, 5..13 bits.
inline constexpr int paper_grid_budgets = 9 * 7 * 9;

struct GridRequest {
  enum class Kind { automatic, paper } kind = Kind::automatic;
  int at_least = 200;  // budgets of the automatic grid
  // Where given, these replace the kind's values on their axis.
  std::optional<AxisValues> kappa = {}, rho = {}, bits = {};
  std::optional<AxisValues> time = {};  // shares of the dense time; see make_time_grid
};

// Every combination of the axes' values, κ slowest; an axis that is off has its only level. The
// paper's grid is κ 0.15..0.95 by 0.1, ρ 0.4..1.0 by 0.1, 5..13 bits (9 x 7 x 9 = 567). The
// automatic one divides the trained ranges into equal cells, at least so many, and takes their
// centres: its mean is that of a budget drawn uniformly from the ranges, and no point lies in a
// corner where every policy must do the same. Throws Error for values outside [0, 1] (bits: 0..16).
std::vector<Budget> make_budget_grid(const GridRequest& request, const ActionSpace& space,
                                     const BudgetRanges& ranges);

// Shares of the dense time, for policies that are asked for these: the request's, or the centres of
// 24 equal cells of the trained range. Throws Error for shares outside (0, 1] and for a grid or
// values of the axes.
std::vector<Budget> make_time_grid(const GridRequest& request, const BudgetRange& range);

// "automatic, 24 shares of the dense time, 0.41..0.99" for reports.
std::string describe_time_grid(const GridRequest& request, const std::vector<Budget>& grid);

// "automatic, 216 budgets: κ 6 values 0.1..0.9, ρ ..., bits ..." for reports.
std::string describe_grid(const GridRequest& request, const std::vector<Budget>& grid);

// The ranges from the lowest to the highest level of each axis: what there is to ask for where
// there is no controller.
BudgetRanges level_ranges(const ActionSpace& space);

}  // namespace sol
