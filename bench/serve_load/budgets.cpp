#include "serve_load/budgets.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace sol::load {
namespace {

constexpr double tolerance = 0.05, goal_share = 0.9;

double axis_error(const Json& end) {
  const auto error = [&](const char* axis, double unit) {
    return std::abs(end["realised"][axis].get<double>() - end["requested"][axis].get<double>()) /
           unit;
  };
  return std::max({error("keep", 1), error("prune", 1), error("bits", 16)});
}

double net_error(const Json& end) {
  return std::abs(end["realised"]["net"].get<double>() - end["requested"]["net"].get<double>());
}

}  // namespace

std::string Share::text() const {
  return of > 0 ? fmt::format("{:.1f} % of {}", 100 * value(), of) : "none to judge";
}

void judge_budgets(const std::vector<ServedRequest>& all, Report& report) {
  Share every, rates, rates_by_axis, learned, fixed;
  Json answers = Json::array();
  for (const ServedRequest& served : all)
    for (const Json& end : served.ends) {
      if ((served.kind != "budget" && served.kind != "axes") || end["realised"].is_null() ||
          end["steps"].get<int>() < shortest_judged)
        continue;
      const double axis = axis_error(end), net = net_error(end);
      answers.push_back({{"policy", end["policy"]},
                         {"requested", end["requested"]},
                         {"realised", end["realised"]},
                         {"steps", end["steps"]},
                         {"axis_error", axis},
                         {"net_error", net}});
      const bool met = (served.kind == "budget" ? net : axis) <= tolerance;
      every.add(met);
      if (served.kind == "budget") {
        rates.add(met);
        rates_by_axis.add(axis <= tolerance);
      } else {
        (end["policy"] == "fixed" ? fixed : learned).add(met);
      }
    }
  if (every.of == 0) return;
  report.add_text(fmt::format(
      "realised within {} of the requested, answers of at least {} tokens: {}\n"
      "  net rates {} (the shares that they stand for: {}); shares per axis: learned {}, fixed "
      "policy {}\n",
      tolerance, shortest_judged, every.text(), rates.text(), rates_by_axis.text(), learned.text(),
      fixed.text()));
  report.goal("realised budgets within 0.05 of the requested for 90 %", every.value() >= goal_share,
              every.text());
  report.set("budgets", {{"all", every.to_json()},
                         {"net_rates", rates.to_json()},
                         {"net_rates_by_axis", rates_by_axis.to_json()},
                         {"learned_axes", learned.to_json()},
                         {"fixed_axes", fixed.to_json()},
                         {"answers", std::move(answers)}});
}

}  // namespace sol::load
