#include "evaluation/sweep_plots.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "evaluation/report_page.h"
#include "evaluation/svg.h"

namespace sol {
namespace {

std::string point_note(std::string_view policy, const Outcome& outcome) {
  const std::string asked = outcome.asked_time
                                ? fmt::format("{:.3f} of the dense time (realised {:.3f})",
                                              outcome.asked.kappa, outcome.time)
                                : budget_text(outcome.asked);
  return fmt::format("{}\nasked for {}\nrealised {}\nnet keep-rate {:.3f}, perplexity {:.3f}",
                     policy, asked, budget_text(outcome.realised), outcome.net_keep,
                     outcome.perplexity);
}

// One policy's points as a cloud and its frontier as a line.
template <typename Pick>
void add_cloud(Plot& plot, const Sweep& sweep, Cost cost, const std::string& label,
               const char* colour, Marker marker, bool dashed, const Pick& pick) {
  PlotSeries cloud{.label = "", .colour = colour, .marker = marker, .size = 2.2, .opacity = 0.28};
  for (const SweepPoint& point : sweep.points) {
    const Outcome& outcome = pick(point);
    cloud.points.push_back({cost(outcome), outcome.perplexity, point_note(label, outcome)});
  }
  PlotSeries line{.label = label,
                  .colour = colour,
                  .marker = marker,
                  .size = 3.4,
                  .line = true,
                  .dashed = dashed};
  std::vector<double> x, y;
  for (const PlotPoint& point : cloud.points) {
    x.push_back(point.x);
    y.push_back(point.y);
  }
  for (const size_t i : pareto_frontier(x, y)) line.points.push_back(cloud.points[i]);
  plot.series.push_back(std::move(line));
  plot.series.push_back(std::move(cloud));
}

struct AxisText {
  Axis axis;
  const char* title;
  const char* unit;
  float (*value)(const Budget&);
};
constexpr AxisText axis_texts[] = {
    {Axis::kappa, "Keys attended to, κ", "share of the keys",
     [](const Budget& b) { return b.kappa; }},
    {Axis::rho, "MLP channels used, ρ", "share of the channels",
     [](const Budget& b) { return b.rho; }},
    {Axis::eta, "Activation precision, η", "bits / 16", [](const Budget& b) { return b.eta; }}};

}  // namespace

double net_keep(const Outcome& outcome) {
  return outcome.net_keep;
}
double milliseconds(const Outcome& outcome) {
  return 1e3 * outcome.seconds_per_token;
}

std::string name_at(const Sweep& sweep, size_t baseline, Matching matching) {
  return fmt::format("{} at {} averages", sweep.baselines[baseline],
                     matching == Matching::realised ? "realised" : "requested");
}

std::string frontier_plot(const Sweep& sweep, const SweepSummary& summary, Cost cost,
                          const std::string& title, const std::string& x_label, int width,
                          int height, size_t most_baselines) {
  Plot plot{.title = title,
            .x = {.label = x_label},
            .y = {.label = "perplexity (lower is better)"},
            .width = width,
            .height = height};
  plot.levels.push_back(
      {sweep.dense.perplexity, fmt::format("dense: {:.2f}", sweep.dense.perplexity)});
  add_cloud(plot, sweep, cost, sweep.policy, policy_colour, Marker::circle, false,
            [](const SweepPoint& p) -> const Outcome& { return p.policy; });
  const bool realised = !summary.realised_frontiers.empty();
  const Matching matching = realised ? Matching::realised : Matching::requested;
  const size_t baselines = std::min(
      most_baselines, (realised ? summary.realised_frontiers : summary.requested_frontiers).size());
  constexpr Marker markers[] = {Marker::square, Marker::triangle, Marker::diamond};
  for (size_t b = 0; b < baselines; ++b)
    add_cloud(plot, sweep, cost, name_at(sweep, b, matching), baseline_colour(b),
              markers[b % std::size(markers)], true,
              [&](const SweepPoint& p) -> const Outcome& { return p.baselines(matching)[b]; });
  // Where dense steps lie: of a small model to the left of all that pays for a policy.
  PlotSeries dense{.label = "", .colour = "#2b333b", .marker = Marker::diamond, .size = 4};
  dense.points.push_back(
      {cost(sweep.dense), sweep.dense.perplexity, point_note("dense", sweep.dense)});
  plot.series.push_back(std::move(dense));
  double low = sweep.dense.perplexity, high = low;
  for (const PlotSeries& series : plot.series)
    for (const PlotPoint& point : series.points) {
      low = std::min(low, point.y);
      high = std::max(high, point.y);
    }
  if (high > 5 * low) {
    plot.y.logarithmic = true;
    plot.y.label = "perplexity, logarithmic (lower is better)";
  }
  return render_svg(plot);
}

double time_share(const Outcome& outcome) {
  return outcome.time;
}

namespace {

template <typename Value>
std::string requested_and_realised(const Sweep& sweep, const char* title, const char* unit,
                                   const Value& values) {
  PlotSeries inside{
      .label = "inside the trained ranges", .colour = policy_colour, .size = 2.6, .opacity = 0.35};
  PlotSeries outside{.label = "outside",
                     .colour = "#D55E00",
                     .marker = Marker::square,
                     .size = 2.4,
                     .opacity = 0.35};
  for (const SweepPoint& point : sweep.points)
    (point.inside ? inside : outside)
        .points.push_back(
            {values(point).first, values(point).second, point_note(sweep.policy, point.policy)});
  Plot plot{.title = title,
            .x = {.label = fmt::format("requested ({})", unit)},
            .y = {.label = fmt::format("realised ({})", unit)},
            .identity = true,
            .width = 316,
            .height = 330};
  double low = 1, high = 0;
  for (const PlotSeries* series : {&inside, &outside})
    for (const PlotPoint& point : series->points) {
      low = std::min({low, point.x, point.y});
      high = std::max({high, point.x, point.y});
    }
  const double room = std::max(0.02, 0.05 * (high - low));
  plot.x.low = plot.y.low = low - room;
  plot.x.high = plot.y.high = high + room;
  if (!inside.points.empty()) plot.series.push_back(std::move(inside));
  if (!outside.points.empty()) plot.series.push_back(std::move(outside));
  return render_svg(plot);
}

}  // namespace

std::string adherence_plot(const Sweep& sweep, Axis axis) {
  const AxisText& text = axis_texts[static_cast<size_t>(axis)];
  return requested_and_realised(sweep, text.title, text.unit, [&](const SweepPoint& point) {
    return std::pair(static_cast<double>(text.value(point.requested)),
                     static_cast<double>(text.value(point.policy.realised)));
  });
}

std::string time_adherence_plot(const Sweep& sweep) {
  return requested_and_realised(
      sweep, "Time", "share of the dense time", [](const SweepPoint& point) {
        return std::pair(static_cast<double>(point.requested.kappa), point.policy.time);
      });
}

}  // namespace sol
