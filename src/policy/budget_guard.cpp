#include "policy/budget_guard.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/fail.h"

namespace sol {
namespace {

double widest_gap(const std::vector<float>& levels) {
  double widest = 0;
  for (size_t i = 1; i < levels.size(); ++i)
    widest = std::max(widest, static_cast<double>(levels[i]) - levels[i - 1]);
  return widest;
}

// Where a value within the levels' range lies among them: 1.5 is halfway between levels 1 and 2.
double position(const std::vector<float>& levels, double value) {
  size_t above = 1;
  while (above + 1 < levels.size() && static_cast<double>(levels[above]) < value) ++above;
  const auto below = static_cast<double>(levels[above - 1]);
  return static_cast<double>(above - 1) + (value - below) / (levels[above] - below);
}

}  // namespace

BudgetGuard::BudgetGuard(const ActionSpace& space, double prior) : prior_(prior) {
  if (!(prior >= 0 && prior <= largest_prior))
    fail("enforced budgets: a prior of {} must lie in 0..{}", prior, largest_prior);
  for (const Axis axis : all_axes) {
    AxisLevels& own = axes_[static_cast<size_t>(axis)];
    own.levels = space.levels(axis);
    // Features are float32: what is reachable exactly must not be lost by rounding.
    own.slack = widest_gap(own.levels) / 2 + 1e-4;
  }
}

std::vector<float> BudgetGuard::AxisLevels::biases(double spent, double total, int left,
                                                   double prior) const {
  constexpr float closed = -std::numeric_limits<float>::infinity();
  std::vector<float> bias(levels.size(), 0.0f);
  if (levels.size() == 1) return bias;
  const double lowest = static_cast<double>(levels.front()),
               highest = static_cast<double>(levels.back());
  const double per_step = position(levels, std::clamp((total - spent) / left, lowest, highest));
  bool any = false;
  for (size_t i = 0; i < levels.size(); ++i) {
    const double after = spent + static_cast<double>(levels[i]);
    const bool open = after + (left - 1) * lowest <= total + slack &&
                      after + (left - 1) * highest >= total - slack;
    bias[i] =
        open ? static_cast<float>(-prior * std::abs(static_cast<double>(i) - per_step)) : closed;
    any = any || open;
  }
  if (!any) (spent + left * highest < total ? bias.back() : bias.front()) = 0;
  return bias;
}

void BudgetGuard::biases(const Features& features, int counted, int left,
                         std::span<float> bias) const {
  std::array<std::vector<float>, 3> of_axis;
  for (size_t axis = 0; axis < 3; ++axis) {
    const auto target = static_cast<double>(features[2 + axis]);
    const double spent = counted * (target + static_cast<double>(features[5 + axis]));
    of_axis[axis] = axes_[axis].biases(spent, target * (counted + left), left, prior_);
  }
  auto next = bias.begin();
  for (const float kappa : of_axis[0])
    for (const float rho : of_axis[1])
      for (const float eta : of_axis[2]) *next++ = kappa + rho + eta;
}

}  // namespace sol
