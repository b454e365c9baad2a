// Section 9: KV pollution.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "evaluation/svg.h"
#include "reproduction/experiment_json.h"
#include "reproduction/sections.h"

namespace sol {
namespace {

constexpr std::array<const char*, 3> axis_names{"attention, κ", "MLP pruning, ρ",
                                                "quantisation, bits"};
constexpr std::array<const char*, 3> axis_colours{"#0072B2", "#D55E00", "#009E73"};
constexpr std::array<Marker, 3> axis_markers{Marker::circle, Marker::square, Marker::triangle};

// The damage of the compressed steps, and what `delayed` says of the steps after them.
std::string pollution_scatter(const Pollution& pollution, const char* title, const char* label,
                              double PollutionSetting::*delayed) {
  Plot plot{.title = title,
            .x = {.label = "perplexity of the compressed steps, change in %"},
            .y = {.label = label},
            .width = 480,
            .height = 400};
  for (size_t axis = 0; axis < 3; ++axis) {
    PlotSeries series{.label = axis_names[axis],
                      .colour = axis_colours[axis],
                      .marker = axis_markers[axis],
                      .size = 4,
                      .line = true,
                      .dashed = true};
    for (const PollutionSetting& setting : pollution.settings)
      if (static_cast<size_t>(setting.axis) == axis)
        series.points.push_back({setting.direct, setting.*delayed, to_string(setting.action)});
    plot.series.push_back(std::move(series));
  }
  return render_svg(plot);
}

// Median and the band from 10 to 90 % over windows, at each step after the compressed ones.
std::string tail_plot(const PollutionSetting& setting) {
  const auto axis = static_cast<size_t>(setting.axis);
  Plot plot{.title = to_string(setting.action),
            .x = {.label = "dense step after the compressed ones"},
            .y = {.label = "change of perplexity in %"},
            .width = 316,
            .height = 280};
  PlotSeries median{
      .label = "median", .colour = axis_colours[axis], .marker = Marker::none, .line = true};
  PlotArea band{.label = "10 to 90 %", .colour = axis_colours[axis], .opacity = 0.2};
  for (size_t t = 0; t < setting.median.size(); ++t) {
    median.points.push_back({static_cast<double>(t + 1), setting.median[t]});
    band.outline.push_back({static_cast<double>(t + 1), setting.high[t]});
  }
  for (size_t t = setting.low.size(); t-- > 0;)
    band.outline.push_back({static_cast<double>(t + 1), setting.low[t]});
  plot.series.push_back(std::move(median));
  plot.areas.push_back(std::move(band));
  return render_svg(plot);
}

// Of each axis the lowest level.
std::vector<const PollutionSetting*> lowest(const Pollution& pollution) {
  std::array<const PollutionSetting*, 3> found{};
  for (const PollutionSetting& setting : pollution.settings) {
    const PollutionSetting*& at = found[static_cast<size_t>(setting.axis)];
    const auto spent = [](const Action& a) { return a.kappa + a.rho + a.eta(); };
    if (!at || spent(setting.action) < spent(at->action)) at = &setting;
  }
  std::vector<const PollutionSetting*> result;
  for (const PollutionSetting* setting : found)
    if (setting) result.push_back(setting);
  return result;
}

// Of each axis the lowest level, and the paper's lowest where that is another one.
std::vector<const PollutionSetting*> drawn(const Pollution& pollution) {
  const PollutionOptions paper;
  std::vector<const PollutionSetting*> result = lowest(pollution);
  for (const Action& action :
       {Action{.kappa = paper.kappa.front()}, Action{.rho = paper.rho.front()},
        Action{.bits = paper.bits.front()}}) {
    const auto found = std::ranges::find(pollution.settings, action, &PollutionSetting::action);
    if (found == pollution.settings.end()) continue;
    if (std::ranges::find(result, &*found) == result.end()) result.push_back(&*found);
  }
  return result;
}

}  // namespace

Section pollution_section(ReportInput& input) {
  Section section{"pollution", "KV pollution", {}, {}};
  const PollutionOptions& options = input.study().experiments.pollution;
  const auto json = input.find("pollution");
  if (!json) {
    input.note_missing(section);
    return section;
  }
  const Pollution pollution = pollution_from_json(*json, input.results().where("pollution"));
  section.draw({pollution_scatter(pollution, "Direct damage and the peaks after it",
                                  "peak in the dense tail, 90th percentile, change in %",
                                  &PollutionSetting::peak_p90),
                pollution_scatter(pollution, "Direct damage and the mean after it",
                                  "mean of the dense tail, change in %", &PollutionSetting::tail)});
  std::vector<std::string> tail_plots;
  for (const PollutionSetting* setting : drawn(pollution))
    tail_plots.push_back(tail_plot(*setting));
  section.draw(tail_plots);
  FigureTable table("pollution", "Change of perplexity against the dense run, in %",
                    {{"action", "Action"},
                     {"direct", "Compressed steps"},
                     {"tail", "Dense tail, mean"},
                     {"peak_p90", "Tail, 90 % of peaks"}});
  for (const PollutionSetting& setting : pollution.settings)
    table.add({to_string(setting.action), number(setting.direct), number(setting.tail, 3),
               number(setting.peak_p90)});
  section.show(std::move(table));
  FigureTable tails("pollution-tail", "Change of perplexity at each step of the tail, in %",
                    {{"action", "Action"},
                     {"step", "Step"},
                     {"median", "Median over windows"},
                     {"low", "10 %"},
                     {"high", "90 %"}});
  for (const PollutionSetting& setting : pollution.settings)
    for (size_t t = 0; t < setting.median.size(); ++t)
      tails.add({to_string(setting.action), count(static_cast<int64_t>(t) + 1),
                 number(setting.median[t], 3), number(setting.low[t], 3),
                 number(setting.high[t], 3)});
  section.tables.push_back(std::move(tails));  // long: for the files, not for the page
  section.note(fmt::format(
      "{} windows: {} dense tokens, {} steps under the action, {} dense ones. The peak is each "
      "window's largest change at one step of the tail. Curves (of each axis the lowest level, and "
      "the paper's lowest; all in csv/pollution-tail.csv): the change at each step of the tail.",
      pollution.windows.size(), options.prefix, options.corrupted, options.tail));
  return section;
}

}  // namespace sol
