#include "evaluation/training_plots.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <set>

#include "evaluation/report_page.h"
#include "evaluation/svg.h"

namespace sol {
namespace {

using Collections = std::vector<CollectionMetrics>;
using Value = std::function<double(const CollectionMetrics&)>;

constexpr int plot_width = 470, plot_height = 340;
constexpr size_t most_points = 120;

// Means of so many neighbours that a curve has at most 120 points, each at the last one's update;
// over the values that are finite.
std::vector<PlotPoint> mean_points(const Collections& collections, const Value& value) {
  const size_t together = (collections.size() + most_points - 1) / most_points;
  std::vector<PlotPoint> points;
  for (size_t begin = 0; begin < collections.size(); begin += together) {
    const size_t end = std::min(begin + together, collections.size());
    double sum = 0;
    int count = 0;
    for (size_t i = begin; i < end; ++i)
      if (const double v = value(collections[i]); std::isfinite(v)) {
        sum += v;
        ++count;
      }
    const double mean = count > 0 ? sum / count : std::numeric_limits<double>::quiet_NaN();
    points.push_back({static_cast<double>(collections[end - 1].update), mean});
  }
  return points;
}

std::string curve(const std::vector<ReportedRun>& runs, const std::string& title,
                  const std::string& unit, const Value& value, bool from_zero = false) {
  Plot plot{.title = title,
            .x = {.label = "updates"},
            .y = {.label = unit},
            .width = plot_width,
            .height = plot_height};
  if (from_zero) plot.y.low = 0;
  for (size_t i = 0; i < runs.size(); ++i) {
    const auto points = mean_points(runs[i].history.collections, value);
    plot.series.push_back({.label = runs.size() > 1 ? runs[i].name : std::string(),
                           .colour = i == 0 ? policy_colour : baseline_colour(i - 1),
                           // A line of one point is not seen.
                           .marker = points.size() > 1 ? Marker::none : Marker::circle,
                           .line = true,
                           .dashed = i > 4,  // colours come again
                           .points = points});
  }
  return render_svg(plot);
}

struct Layer {
  std::string label, colour;
  std::vector<PlotPoint> points;  // x as in every other layer
};

// Layers on top of each other, the first one lowest.
void stack(Plot& plot, const std::vector<Layer>& layers) {
  std::vector<double> base(layers.empty() ? 0 : layers[0].points.size(), 0.0);
  for (const Layer& layer : layers) {
    PlotArea area{
        .label = layer.label, .colour = layer.colour, .opacity = 0.9, .note = layer.label};
    for (size_t i = 0; i < base.size(); ++i) area.outline.push_back({layer.points[i].x, base[i]});
    for (size_t i = base.size(); i-- > 0;) {
      base[i] += std::isfinite(layer.points[i].y) ? layer.points[i].y : 0.0;
      area.outline.push_back({layer.points[i].x, base[i]});
    }
    plot.areas.push_back(std::move(area));
  }
}

// From light, the cheapest level, to dark, the dense one.
std::string shade(size_t index, size_t count) {
  constexpr std::array<double, 3> light{222, 235, 247}, dark{8, 69, 148};
  const double share =
      count > 1 ? static_cast<double>(index) / static_cast<double>(count - 1) : 1.0;
  std::string colour = "#";
  for (size_t i = 0; i < 3; ++i)
    colour += fmt::format("{:02x}", std::lround(light[i] + share * (dark[i] - light[i])));
  return colour;
}

}  // namespace

std::vector<std::string> training_curves(const std::vector<ReportedRun>& runs) {
  using M = CollectionMetrics;
  std::vector<std::string> plots;
  plots.push_back(
      curve(runs, "Reward", "reward per step (nats)", [](const M& m) { return m.reward; }));
  plots.push_back(curve(runs, "Perplexity of the sampled schedules", "perplexity",
                        [](const M& m) { return m.perplexity; }));
  const auto by_time = [](const ReportedRun& run) {
    return run.history.collections.back().time_gap.has_value();
  };
  static constexpr double none = std::numeric_limits<double>::quiet_NaN();
  const auto gap = [&](const char* of, const auto& value) {
    plots.push_back(curve(runs, fmt::format("Gap to the budget: {}", of),
                          "mean |realised − requested|", value, true));
  };
  constexpr std::array<const char*, 3> axes{"κ, context", "ρ, MLP channels", "η, bits / 16"};
  for (size_t axis = 0; axis < axes.size() && !std::ranges::all_of(runs, by_time); ++axis)
    gap(axes[axis], [axis](const M& m) { return m.time_gap ? none : m.gap[axis]; });
  if (std::ranges::any_of(runs, by_time))
    gap("share of the dense time", [](const M& m) { return m.time_gap.value_or(none); });
  plots.push_back(
      curve(runs, "Entropy of the policy", "nats per step", [](const M& m) { return m.entropy; }));
  plots.push_back(curve(
      runs, "Clipped steps", "% of the steps", [](const M& m) { return 100 * m.clip_fraction; },
      true));
  // 0: a log of an earlier version, which does not have it.
  if (std::ranges::any_of(runs, [](const ReportedRun& run) {
        return run.history.collections.back().learning_rate > 0;
      }))
    plots.push_back(curve(
        runs, "Learning rate", "× 10⁻⁴",
        [](const M& m) {
          return m.learning_rate > 0 ? 1e4 * m.learning_rate
                                     : std::numeric_limits<double>::quiet_NaN();
        },
        true));
  return plots;
}

std::string phases_plot(const RunHistory& history) {
  using M = CollectionMetrics;
  Plot plot{.title = "Seconds of a collection",
            .x = {.label = "updates"},
            .y = {.label = "seconds", .low = 0},
            .width = plot_width,
            .height = plot_height};
  const auto layer = [&](const char* label, const char* colour, const Value& value) {
    return Layer{label, colour, mean_points(history.collections, value)};
  };
  stack(plot, {layer("prefill", "#0072B2", [](const M& m) { return m.seconds_prefill; }),
               layer("rollout", "#56B4E9", [](const M& m) { return m.seconds_rollout; }),
               layer("policy", "#009E73", [](const M& m) { return m.seconds_policy; }),
               layer("update", "#E69F00", [](const M& m) { return m.seconds_update; }),
               layer("other", "#999999", [](const M& m) {
                 return std::max(0.0, m.seconds - m.seconds_prefill - m.seconds_rollout -
                                          m.seconds_policy - m.seconds_update);
               })});
  return render_svg(plot);
}

std::vector<std::string> action_plots(const RunHistory& history) {
  constexpr std::array<const char*, 3> titles{"κ, share of the context", "ρ, share of MLP channels",
                                              "Activation bits"};
  std::vector<std::string> plots;
  for (size_t axis = 0; axis < titles.size(); ++axis) {
    std::set<double> levels;
    for (const CollectionMetrics& m : history.collections)
      for (const LevelCount& level : m.actions[axis]) levels.insert(level.level);
    if (levels.size() < 2) continue;
    Plot plot{.title = fmt::format("Chosen levels: {}", titles[axis]),
              .x = {.label = "updates"},
              .y = {.label = "% of the steps", .low = 0, .high = 100},
              .width = plot_width,
              .height = plot_height};
    std::vector<Layer> layers;
    for (const double level : levels) {
      const auto share = [axis, level](const CollectionMetrics& m) {
        double all = 0, chosen = 0;
        for (const LevelCount& count : m.actions[axis]) {
          all += static_cast<double>(count.count);
          if (count.level == level) chosen += static_cast<double>(count.count);
        }
        return all > 0 ? 100 * chosen / all : std::numeric_limits<double>::quiet_NaN();
      };
      layers.push_back({fmt::format("{:g}", level), shade(layers.size(), levels.size()),
                        mean_points(history.collections, share)});
    }
    stack(plot, layers);
    plots.push_back(render_svg(plot));
  }
  return plots;
}

}  // namespace sol
