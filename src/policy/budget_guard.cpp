#include "policy/budget_guard.h"

#include <algorithm>

namespace sol {
namespace {

double widest_gap(const std::vector<float>& levels) {
  double widest = 0;
  for (size_t i = 1; i < levels.size(); ++i)
    widest = std::max(widest, static_cast<double>(levels[i]) - levels[i - 1]);
  return widest;
}

}  // namespace

BudgetGuard::BudgetGuard(const ActionSpace& space) {
  for (const Axis axis : all_axes) {
    AxisLevels& own = axes_[static_cast<size_t>(axis)];
    own.levels = space.levels(axis);
    // Features are float32: what is reachable exactly must not be lost by rounding.
    own.slack = widest_gap(own.levels) / 2 + 1e-4;
  }
}

std::vector<uint8_t> BudgetGuard::AxisLevels::open(double spent, double total, int left) const {
  std::vector<uint8_t> open(levels.size(), 1);
  if (levels.size() == 1) return open;
  const double lowest = static_cast<double>(levels.front()),
               highest = static_cast<double>(levels.back());
  bool any = false;
  for (size_t i = 0; i < levels.size(); ++i) {
    const double after = spent + static_cast<double>(levels[i]);
    open[i] = after + (left - 1) * lowest <= total + slack &&
              after + (left - 1) * highest >= total - slack;
    any = any || open[i];
  }
  if (!any) (spent + left * highest < total ? open.back() : open.front()) = 1;
  return open;
}

void BudgetGuard::open_actions(const Features& features, int counted, int left,
                               std::span<uint8_t> open) const {
  std::array<std::vector<uint8_t>, 3> of_axis;
  for (size_t axis = 0; axis < 3; ++axis) {
    const auto target = static_cast<double>(features[2 + axis]);
    const double spent = counted * (target + static_cast<double>(features[5 + axis]));
    of_axis[axis] = axes_[axis].open(spent, target * (counted + left), left);
  }
  auto next = open.begin();
  for (const uint8_t kappa : of_axis[0])
    for (const uint8_t rho : of_axis[1])
      for (const uint8_t eta : of_axis[2]) *next++ = kappa & rho & eta;
}

}  // namespace sol
