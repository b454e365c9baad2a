#include "training/spending_price.h"

#include <algorithm>
#include <cmath>

#include "base/fail.h"
#include "policy/axis.h"
#include "training/least_squares.h"

namespace sol {
namespace {

// Where a share lies among a table's places: the one before it, and how far it is to the next.
struct Place {
  size_t before;
  double beyond;
};

Place place_of(double share) {
  const double at = std::clamp(share, 0.0, 1.0) * (price_places - 1);
  const auto before = std::min(static_cast<size_t>(at), static_cast<size_t>(price_places - 2));
  return {before, at - static_cast<double>(before)};
}

// So many visits count as none, so that a place that is seldom seen does not move by its noise.
constexpr double few_visits = 20;

// Of one step of a group: each schedule's values less the mean of them all.
template <typename Value>
std::vector<double> centred(size_t group_size, const Value& value_of) {
  std::vector<double> out(group_size);
  double mean = 0;
  for (size_t k = 0; k < group_size; ++k)
    mean += (out[k] = value_of(k)) / static_cast<double>(group_size);
  for (double& x : out) x -= mean;
  return out;
}

void check(std::span<const Schedule> schedules, int group_size) {
  if (schedules.empty() || group_size < 1 ||
      schedules.size() % static_cast<size_t>(group_size) != 0)
    fail("a price of spending: {} schedules cannot be cut into groups of {}", schedules.size(),
         group_size);
  for (const Schedule& s : schedules)
    if (s.rewards.size() != schedules[0].rewards.size() || s.actions.size() != s.rewards.size() ||
        s.effective.size() != s.rewards.size())
      fail("a price of spending: a schedule has {} rewards, {} actions and {} flags, another {}",
           s.rewards.size(), s.actions.size(), s.effective.size(), schedules[0].rewards.size());
}

// Of the rewards within their groups, over all steps.
double deviation_within_groups(std::span<const Schedule> schedules, size_t group_size) {
  double squares = 0;
  size_t count = 0;
  for (size_t first = 0; first < schedules.size(); first += group_size)
    for (size_t t = 0; t < schedules[0].rewards.size(); ++t)
      for (const double reward : centred(group_size, [&](size_t k) {
             return static_cast<double>(schedules[first + k].rewards[t]);
           })) {
        squares += reward * reward;
        ++count;
      }
  return count > 0 ? std::sqrt(squares / static_cast<double>(count)) : 0.0;
}

}  // namespace

SpendingPrices::SpendingPrices(const ActionSpace& space, double rate) : space_(space), rate_(rate) {
  if (!(rate > 0 && std::isfinite(rate)))
    fail("a price of spending: its rate {} must be more than 0", rate);
}

void SpendingPrices::restore(const PriceTable& table) {
  constexpr double most = 1e6;
  for (const auto& prices : table)
    for (const double price : prices)
      if (!(price >= 0 && price <= most)) fail("a price of spending of {} makes no sense", price);
  table_ = table;
}

std::vector<SpendingPrices::Step> SpendingPrices::steps_of(const Schedule& schedule) const {
  std::vector<Step> out(schedule.actions.size());
  for (const Axis axis : all_axes) {
    if (!space_.on(axis)) continue;
    const auto i = static_cast<size_t>(axis);
    const std::vector<float> levels = space_.levels(axis);
    const auto lowest = static_cast<double>(levels.front());
    const double range = static_cast<double>(levels.back()) - lowest;
    const auto counted = static_cast<double>(std::ranges::count(schedule.effective, uint8_t{1}));
    // Of all steps that count, in shares of the range.
    double left = counted * (static_cast<double>(value(schedule.budget, axis)) - lowest) / range;
    double to_come = counted;
    for (size_t t = 0; t < out.size(); ++t) {
      if (!schedule.effective[t]) continue;
      const Action action = space_.action(schedule.actions[t]);
      const Budget spent{action.kappa, action.rho, action.eta()};
      Step& step = out[t];
      step.counts = true;
      step.last = to_come <= 1;
      step.left[i] = std::clamp(left / to_come, 0.0, 1.0);
      step.spent[i] = (static_cast<double>(value(spent, axis)) - lowest) / range;
      left -= step.spent[i];
      --to_come;
    }
  }
  return out;
}

PriceTable SpendingPrices::first_prices(std::span<const Schedule> schedules, int group_size) const {
  const auto size = static_cast<size_t>(group_size);
  NormalEquations fit;
  for (size_t first = 0; first < schedules.size(); first += size) {
    std::vector<std::vector<Step>> steps;
    for (size_t k = 0; k < size; ++k) steps.push_back(steps_of(schedules[first + k]));
    for (size_t t = 0; t < schedules[0].rewards.size(); ++t) {
      if (!steps[0][t].counts) continue;  // of one input all schedules' steps count, or none
      const std::vector<double> reward = centred(
          size, [&](size_t k) { return static_cast<double>(schedules[first + k].rewards[t]); });
      std::array<std::vector<double>, 3> spent;
      for (size_t axis = 0; axis < 3; ++axis)
        spent[axis] = centred(size, [&](size_t k) { return steps[k][t].spent[axis]; });
      for (size_t k = 0; k < size; ++k) fit.add({spent[0][k], spent[1][k], spent[2][k]}, reward[k]);
    }
  }
  const Slopes slopes = fit.solve();
  PriceTable prices{};
  for (const Axis axis : all_axes) {
    const auto i = static_cast<size_t>(axis);
    if (space_.on(axis)) prices[i].fill(std::max(slopes[i], 0.0));
  }
  return prices;
}

void SpendingPrices::charge(std::span<Schedule> schedules, int group_size) {
  check(schedules, group_size);
  if (!table_) table_ = first_prices(schedules, group_size);
  for (Schedule& schedule : schedules) {
    schedule.charges.clear();
    for (const Step& step : steps_of(schedule)) {
      double charge = 0;
      for (size_t axis = 0; step.counts && axis < 3; ++axis) {
        const Place place = place_of(step.left[axis]);
        const auto& prices = (*table_)[axis];
        const double price =
            prices[place.before] + place.beyond * (prices[place.before + 1] - prices[place.before]);
        charge += price * step.spent[axis];
      }
      schedule.charges.push_back(static_cast<float>(charge));
    }
  }
}

void SpendingPrices::adjust(std::span<const Schedule> schedules, int group_size) {
  check(schedules, group_size);
  if (!table_) fail("a price of spending: nothing has been charged yet");
  PriceTable visits{}, too_much{};
  for (const Schedule& schedule : schedules)
    for (const Step& step : steps_of(schedule))
      for (size_t axis = 0; step.counts && !step.last && axis < 3; ++axis) {
        const Place place = place_of(step.left[axis]);
        const double gap = step.spent[axis] - step.left[axis];
        visits[axis][place.before] += 1 - place.beyond;
        visits[axis][place.before + 1] += place.beyond;
        too_much[axis][place.before] += (1 - place.beyond) * gap;
        too_much[axis][place.before + 1] += place.beyond * gap;
      }
  const double unit = rate_ * deviation_within_groups(schedules, static_cast<size_t>(group_size));
  for (size_t axis = 0; axis < 3; ++axis)
    for (size_t k = 0; k < price_places; ++k) {
      double& price = (*table_)[axis][k];
      price = std::max(0.0, price + unit * too_much[axis][k] / (visits[axis][k] + few_visits));
    }
}

}  // namespace sol
