#include "evaluation/budget_grid.h"

#include <cmath>
#include <set>

#include "base/fail.h"
#include "base/number_text.h"
#include "evaluation/perplexity.h"
#include "sol/episode.h"

namespace sol {

namespace {

constexpr size_t largest_axis = 1000;
constexpr size_t largest_grid = 100000;

double finite_number(std::string_view text, const std::string& axis) {
  const auto value = parse_number<double>(text);
  if (!value || !std::isfinite(*value)) fail("{}: '{}' is not a number", axis, text);
  return *value;
}

std::vector<std::string_view> split_at(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (true) {
    const size_t at = text.find(separator);
    parts.push_back(text.substr(0, at));
    if (at == std::string_view::npos) return parts;
    text.remove_prefix(at + 1);
  }
}

AxisValues centres(const BudgetRange& range, int cells, double unit) {
  AxisValues values;
  for (int i = 0; i < cells; ++i)
    values.push_back((range.low + (range.high - range.low) * (i + 0.5) / cells) * unit);
  return values;
}

void check_distinct(const AxisValues& values, const std::string& axis) {
  std::set<double> seen;
  for (const double value : values)
    if (!seen.insert(value).second) fail("{}: {} is given twice", axis, value);
}

// An axis that is off has its only level at every point, so values for it would be ignored.
void set_axis(AxisValues& values, const std::optional<AxisValues>& requested, double only, bool on,
              const char* axis) {
  const bool same = requested && requested->size() == 1 &&
                    static_cast<float>(requested->front()) == static_cast<float>(only);
  if (requested && !on && !same)
    fail("values for the axis {} were given, but it has only the level {}; leave them out", axis,
         only);
  if (requested) values = *requested;
  if (!on) values = {only};
}

AxisValues steps(double from, double step, int count) {
  AxisValues values;
  for (int i = 0; i < count; ++i) values.push_back(from + step * i);
  return values;
}

}  // namespace

AxisValues parse_axis_values(std::string_view text, const std::string& axis) {
  AxisValues values;
  const auto parts = split_at(text, ':');
  if (parts.size() == 1) {
    for (const auto part : split_at(text, ',')) values.push_back(finite_number(part, axis));
    check_distinct(values, axis);
    return values;
  }
  if (parts.size() != 3)
    fail("{}: '{}' should be FROM:TO:STEP, a list like 0.2,0.5,0.8, or one value", axis, text);
  const double from = finite_number(parts[0], axis), to = finite_number(parts[1], axis),
               step = finite_number(parts[2], axis);
  if (step <= 0 || to < from)
    fail("{}: '{}' needs a positive step and an end that is not below its beginning", axis, text);
  // A hair of tolerance: 0.9 is meant to be in 0.1:0.9:0.2 although the sums are not exact.
  const double count = std::floor((to - from) / step + 1e-6) + 1;
  if (count > static_cast<double>(largest_axis))
    fail("{}: '{}' has more than {} values", axis, text, largest_axis);
  return steps(from, step, static_cast<int>(count));
}

std::vector<Budget> make_budget_grid(const GridRequest& request, const ActionSpace& space,
                                     const BudgetRanges& ranges) {
  if (request.time)
    fail("shares of the dense time are for controllers that were trained for times, not this one");
  AxisValues kappas, rhos, bits;
  if (request.kind == GridRequest::Kind::paper) {
    kappas = steps(0.15, 0.1, 9);
    rhos = steps(0.4, 0.1, 7);
    bits = steps(5, 1, 9);
  } else {
    int axes = 0;
    for (const Axis axis : all_axes) axes += space.on(axis) ? 1 : 0;
    const int cells =
        axes == 0 ? 1 : static_cast<int>(std::ceil(std::pow(request.at_least, 1.0 / axes) - 1e-9));
    kappas = centres(ranges.kappa, cells, 1);
    rhos = centres(ranges.rho, cells, 1);
    bits = centres(ranges.eta, cells, 16);
  }
  const Budget only = space.clamp_off_axes(Budget{});
  set_axis(kappas, request.kappa, only.kappa, space.on(Axis::kappa), "keep");
  set_axis(rhos, request.rho, only.rho, space.on(Axis::rho), "prune");
  set_axis(bits, request.bits, static_cast<double>(only.eta) * 16, space.on(Axis::eta), "bits");
  for (const double value : bits)
    if (!(value >= 0 && value <= 16)) fail("a budget of {} bits lies outside [0, 16]", value);

  // Each axis may be long, so the product is found without multiplying all three at once.
  if (kappas.size() * rhos.size() > largest_grid / bits.size())
    fail("{} x {} x {} values make more than {} budgets; use fewer values", kappas.size(),
         rhos.size(), bits.size(), largest_grid);
  std::vector<Budget> grid;
  grid.reserve(kappas.size() * rhos.size() * bits.size());
  for (const double k : kappas)
    for (const double r : rhos)
      for (const double b : bits) {
        const Budget budget{static_cast<float>(k), static_cast<float>(r),
                            static_cast<float>(b / 16)};
        check_budget(budget);
        grid.push_back(budget);
      }
  return grid;
}

std::string describe_grid(const GridRequest& request, const std::vector<Budget>& grid) {
  const auto axis = [&](float (*value)(const Budget&)) {
    std::set<float> values;
    for (const Budget& budget : grid) values.insert(value(budget));
    if (values.size() == 1) return fmt::format("{:.4g}", *values.begin());
    return fmt::format("{} values {:.4g}..{:.4g}", values.size(), *values.begin(),
                       *values.rbegin());
  };
  const bool custom = request.kappa || request.rho || request.bits;
  return fmt::format(
      "{}{}, {} budgets: κ {}; ρ {}; bits {}",
      request.kind == GridRequest::Kind::paper ? "paper" : "automatic (centres of equal cells)",
      custom ? ", with own values" : "", grid.size(), axis([](const Budget& b) { return b.kappa; }),
      axis([](const Budget& b) { return b.rho; }),
      axis([](const Budget& b) { return b.eta * 16; }));
}

std::vector<Budget> make_time_grid(const GridRequest& request, const BudgetRange& range) {
  constexpr int cells = 24;
  if (request.kind == GridRequest::Kind::paper || request.kappa || request.rho || request.bits)
    fail(
        "this controller was trained for times: the grid is one of shares of the dense time, not "
        "of averages per axis");
  std::vector<Budget> grid;
  for (const double share : request.time ? *request.time : centres(range, cells, 1)) {
    if (!(share > 0 && share <= 1)) fail("{} of the dense time lies outside (0, 1]", share);
    grid.push_back(time_budget(static_cast<float>(share)));
  }
  return grid;
}

std::string describe_time_grid(const GridRequest& request, const std::vector<Budget>& grid) {
  float low = 1, high = 0;
  for (const Budget& budget : grid) {
    low = std::min(low, budget.kappa);
    high = std::max(high, budget.kappa);
  }
  return fmt::format("{}, {} shares of the dense time, {:.4g}..{:.4g}",
                     request.time ? "own values" : "automatic (centres of equal cells)",
                     grid.size(), low, high);
}

BudgetRanges level_ranges(const ActionSpace& space) {
  const auto range = [&](Axis axis) {
    const std::vector<float> levels = space.levels(axis);
    return BudgetRange{static_cast<double>(levels.front()), static_cast<double>(levels.back())};
  };
  return {range(Axis::kappa), range(Axis::rho), range(Axis::eta)};
}

}  // namespace sol
