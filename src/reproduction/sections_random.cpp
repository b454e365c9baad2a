// Sections 5 to 7: policies against random schedules.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "evaluation/density.h"
#include "evaluation/report_page.h"
#include "evaluation/svg.h"
#include "reproduction/jobs.h"
#include "reproduction/paper_figures.h"
#include "reproduction/sections.h"

namespace sol {
namespace {

constexpr const char* random_colour = "#6b7682";
constexpr const char* short_frontier =
    "A frontier with fewer points than were asked for gives fewer.";

// Where random schedules are dense, in shades. Neighbours of one shade are one area, and what holds
// next to nothing is left out: a page holds a dozen of these plots.
std::vector<PlotArea> density_cells(const std::vector<double>& x, const std::vector<double>& y,
                                    const std::string& label) {
  constexpr int columns = 60, rows = 40, shades = 8;
  const auto [x_low, x_high] = std::ranges::minmax(x);
  const auto [y_low, y_high] = std::ranges::minmax(y);
  // Schedules of one point spend the same to the last step: a width that can be seen.
  const double x_width = std::max(kernel_bandwidth(x, 2), 4e-3);
  const double y_width = std::max(kernel_bandwidth(y, 2), 1e-3 * y_high);
  const double x_room = 2.5 * x_width, y_room = 2.5 * y_width;
  const auto x_at = evenly_spaced(x_low - x_room, x_high + x_room, columns);
  const auto y_at = evenly_spaced(std::max(y_low - y_room, 0.5 * y_low), y_high + y_room, rows);
  const std::vector<double> density = kernel_density_2d(x, y, x_width, y_width, x_at, y_at);
  const double most = *std::ranges::max_element(density);
  const double half_x = (x_at[1] - x_at[0]) / 2, half_y = (y_at[1] - y_at[0]) / 2;
  const auto shade = [&](size_t row, size_t column) {
    // The square root shows the thin edge of the cloud as well.
    return static_cast<int>(shades * std::sqrt(density[row * x_at.size() + column] / most));
  };
  std::vector<PlotArea> cells;
  for (size_t row = 0; row < y_at.size(); ++row)
    for (size_t column = 0; column < x_at.size();) {
      size_t end = column + 1;
      const int one = shade(row, column);
      while (end < x_at.size() && shade(row, end) == one) ++end;
      if (one > 0) {
        PlotArea cell{.label = cells.empty() ? label : "",
                      .colour = random_colour,
                      .opacity = 0.6 * one / shades};
        const double left = x_at[column] - half_x, right = x_at[end - 1] + half_x;
        const double below = y_at[row] - half_y, above = y_at[row] + half_y;
        cell.outline = {{left, below}, {right, below}, {right, above}, {left, above}};
        cells.push_back(std::move(cell));
      }
      column = end;
    }
  return cells;
}

PlotSeries operating_points(const std::vector<SearchPoint>& points,
                            ScheduleOutcome SearchPoint::*of, const std::string& label,
                            const char* colour, Marker marker, bool dashed) {
  PlotSeries series{.label = label,
                    .colour = colour,
                    .marker = marker,
                    .size = 4,
                    .line = true,
                    .dashed = dashed};
  for (const SearchPoint& point : points)
    series.points.push_back({(point.*of).net_keep, (point.*of).perplexity});
  std::ranges::sort(series.points, {}, &PlotPoint::x);
  return series;
}

std::string landscape_plot(const std::vector<SearchPoint>& points, size_t kind,
                           const std::string& name) {
  Plot plot{.title = fmt::format("{}: {} schedules", name, points[0].random[kind].policy),
            .x = {.label = "net keep-rate"},
            .y = {.label = "perplexity", .logarithmic = true},
            .width = 480,
            .height = 400};
  std::vector<double> x, y;
  for (const SearchPoint& point : points)
    for (const ScheduleOutcome& schedule : point.random[kind].schedules) {
      x.push_back(schedule.net_keep);
      y.push_back(schedule.perplexity);
    }
  plot.series.push_back(operating_points(points, &SearchPoint::policy, "policy", policy_colour,
                                         Marker::circle, false));
  plot.series.push_back(operating_points(points, &SearchPoint::fixed, "fixed", baseline_colour(0),
                                         Marker::square, true));
  plot.areas = density_cells(x, y, "random");
  return render_svg(plot);
}

// A distribution as a shape around x = `centre`, mirrored, at most `half_width` wide on each side.
PlotArea violin(double centre, double half_width, const std::vector<double>& values) {
  PlotArea area{.label = "", .colour = random_colour, .opacity = 0.35};
  const auto [low, high] = std::ranges::minmax(values);
  const double width = kernel_bandwidth(values);
  const auto at = evenly_spaced(low - 2 * width, high + 2 * width, 48);
  const std::vector<double> density = kernel_density(values, width, at);
  const double most = *std::ranges::max_element(density);
  for (size_t i = 0; i < at.size(); ++i)
    area.outline.push_back({centre + half_width * density[i] / most, at[i]});
  for (size_t i = at.size(); i-- > 0;)
    area.outline.push_back({centre - half_width * density[i] / most, at[i]});
  return area;
}

struct NamedPoint {
  std::string controller, number, label;
  SearchPoint point;
};

// Of the controllers of action spaces, a family's; the label tells points of one plot apart.
std::vector<NamedPoint> search_points(ReportInput& input, const StudyFamily& family) {
  std::vector<NamedPoint> found;
  for (const std::string& name : input.study().experiments.spaces.controllers)
    for (int i = 0; family.find(name) && i < input.study().experiments.search.points; ++i)
      if (const auto points = input.search(search_job(family.name, name, i)))
        for (const SearchPoint& point : *points)
          found.push_back({name, fmt::format("{}", i + 1),
                           fmt::format("{} {:.2f}", name, point.policy.net_keep), point});
  return found;
}

// Of the single-axis controllers; only the middle one of each has a label, and stands for it: its
// levels, since a family's may be others than the controller's name says.
std::vector<NamedPoint> single_points(ReportInput& input, const StudyFamily& family) {
  std::vector<NamedPoint> found;
  for (const std::string& name : input.study().experiments.single.controllers) {
    if (!family.find(name)) continue;
    const auto points = input.search(single_job(family.name, name));
    const std::string levels = input.levels(family, name);
    const std::string& label = levels.empty() ? name : levels;
    for (size_t i = 0; points && i < points->size(); ++i)
      found.push_back(
          {name, fmt::format("{}", i + 1), i == points->size() / 2 ? label : "", (*points)[i]});
  }
  return found;
}

std::vector<NamedPoint> labelled(std::vector<NamedPoint> points) {
  std::erase_if(points, [](const NamedPoint& one) { return one.label.empty(); });
  return points;
}

// At how many of the points the policy is at least as good as the best random schedule.
BestOf best_of(const std::vector<NamedPoint>& points) {
  return {std::ranges::count_if(points,
                                [](const NamedPoint& one) {
                                  return better_than(one.point.random[0],
                                                     one.point.policy.perplexity) == 0;
                                }),
          static_cast<int64_t>(points.size())};
}

std::string best_of_sentence(const StudyFamily& family, const BestOf& found, int schedules,
                             const char* paper) {
  return fmt::format(
      "{}: the policy is at least as good as the best of {} random schedules at {} of {} points "
      "(the paper, whose random schedules draw actions uniformly: {}).",
      family.title, schedules, found.won, found.points, paper);
}

// Violins of random schedules, one for each operating point, perplexities relative to the random
// ones' mean so that points of different level stand side by side.
std::string violin_plot(const std::vector<NamedPoint>& points, const std::string& title) {
  Plot plot{.title = title,
            .x = {.label = "operating point"},
            .y = {.label = "perplexity / mean of the random schedules"},
            .width = 940,
            .height = 420};
  PlotSeries policy{
      .label = "policy", .colour = policy_colour, .marker = Marker::circle, .size = 5};
  PlotSeries best{.label = "best random",
                  .colour = baseline_colour(1),
                  .marker = Marker::triangle,
                  .size = 4.5};
  PlotSeries fixed{
      .label = "fixed", .colour = baseline_colour(0), .marker = Marker::square, .size = 4};
  for (size_t i = 0; i < points.size(); ++i) {
    const SearchPoint& point = points[i].point;
    const auto centre = static_cast<double>(i);
    const double mean = point.random[0].mean().perplexity;
    std::vector<double> relative;
    for (const ScheduleOutcome& schedule : point.random[0].schedules)
      relative.push_back(schedule.perplexity / mean);
    plot.areas.push_back(violin(centre, 0.36, relative));
    if (i == 0) plot.areas.back().label = "random schedules";
    policy.points.push_back({centre, point.policy.perplexity / mean});
    best.points.push_back({centre, point.random[0].best().perplexity / mean});
    fixed.points.push_back({centre, point.fixed.perplexity / mean});
    plot.x.ticks.push_back({centre, points[i].label});
  }
  plot.x.low = -0.6;
  plot.x.high = static_cast<double>(points.size()) - 0.4;
  plot.series = {policy, best, fixed};
  return render_svg(plot);
}

std::vector<FigureTable::Column> search_columns() {
  return {{"family", "Levels"},
          {"controller", "Controller"},
          {"axes", "Chooses"},
          {"point", "Point"},
          {"policy_net_keep", "Net, policy"},
          {"random_net_keep", "Net, random"},
          {"policy_perplexity", "Policy"},
          {"fixed_perplexity", "Fixed"},
          {"best_random_perplexity", "Best random"},
          {"schedules", "Schedules"},
          {"better_than_policy", "Better than policy"},
          {"share_better", "Share"},
          {"regret", "Regret"},
          {"better_than_fixed", "Better than fixed"}};
}

void add_search(FigureTable& table, ReportInput& input, const StudyFamily& family,
                const NamedPoint& named) {
  const SearchPoint& point = named.point;
  const RandomSchedules& random = point.random[0];
  const auto n = static_cast<int64_t>(random.schedules.size());
  const double spent = random.mean().net_keep;
  const int64_t better = better_than(random, point.policy.perplexity);
  table.add({family.name, named.controller, input.levels(family, named.controller), named.number,
             number(point.policy.net_keep, 3), number(spent, 3), number(point.policy.perplexity, 3),
             number(point.fixed.perplexity, 3), number(random.best().perplexity, 3), count(n),
             count(better), share_of(static_cast<double>(better) / static_cast<double>(n)),
             number(point.policy.perplexity - random.best().perplexity, 3),
             count(better_than(random, point.fixed.perplexity))});
}

}  // namespace

BestOf best_of_search(ReportInput& input, const StudyFamily& family) {
  return best_of(search_points(input, family));
}

BestOf best_of_single(ReportInput& input, const StudyFamily& family) {
  return best_of(labelled(single_points(input, family)));
}

Section landscape_section(ReportInput& input) {
  Section section{"landscape", "Random landscape", {}, {}};
  FigureTable table("landscape", "Random schedules at each point of the validation frontier",
                    {{"family", "Levels"},
                     {"controller", "Controller"},
                     {"point", "Point"},
                     {"random", "Random"},
                     {"net_keep", "Net, policy"},
                     {"policy_perplexity", "Policy"},
                     {"fixed_perplexity", "Fixed"},
                     {"random_mean", "Random, mean"},
                     {"random_best", "best"},
                     {"random_net_keep", "Net, random"}});
  FigureTable counts("landscape-counts", "Points of the validation frontier at which",
                     {{"family", "Levels"},
                      {"controller", "Controller"},
                      {"random", "Random"},
                      {"points", "Points"},
                      {"fixed", "the policy is better than fixed"},
                      {"random_mean", "than the mean schedule"},
                      {"random_best", "than the best one"}});
  for (const StudyFamily& family : input.study().families) {
    std::vector<std::string> plots;
    for (const std::string& name : input.study().experiments.spaces.controllers) {
      if (!family.find(name)) continue;
      const auto points = input.search(landscape_job(family.name, name));
      if (!points || points->empty()) continue;
      for (size_t kind = 0; kind < points->front().random.size(); ++kind) {
        plots.push_back(landscape_plot(*points, kind, name));
        int64_t over_fixed = 0, over_mean = 0, over_best = 0;
        for (size_t i = 0; i < points->size(); ++i) {
          const SearchPoint& point = (*points)[i];
          const RandomSchedules& random = point.random[kind];
          const ScheduleOutcome mean = random.mean();
          const double policy = point.policy.perplexity;
          over_fixed += policy < point.fixed.perplexity ? 1 : 0;
          over_mean += policy < mean.perplexity ? 1 : 0;
          over_best += policy < random.best().perplexity ? 1 : 0;
          table.add({family.name, name, count(static_cast<int64_t>(i) + 1), random.policy,
                     number(point.policy.net_keep, 3), number(point.policy.perplexity),
                     number(point.fixed.perplexity), number(mean.perplexity),
                     number(random.best().perplexity), number(mean.net_keep, 3)});
        }
        counts.add({family.name, name, points->front().random[kind].policy,
                    count(static_cast<int64_t>(points->size())), count(over_fixed),
                    count(over_mean), count(over_best)});
      }
    }
    if (!plots.empty()) section.heading(family.title);
    section.draw(plots);
  }
  // Long: for the files, not for the page.
  if (!table.empty()) section.tables.push_back(std::move(table));
  section.show(std::move(counts));
  input.note_missing(section);
  section.note(
      std::string("Operating points are chosen on validation text and judged on test text. ") +
      short_frontier +
      " random-matched draws schedules whose averages are the policy's (as near as whole steps "
      "allow); random-uniform draws any action, as the paper does, so that its schedules have "
      "other averages than the policy and better or worse perplexities for that alone.");
  return section;
}

Section search_section(ReportInput& input) {
  Section section{"search", "Policy against many random schedules", {}, {}};
  const auto& settings = input.study().experiments.search;
  FigureTable table(
      "search",
      fmt::format("Against {} random schedules of the nearest averages that whole steps allow",
                  settings.schedules),
      search_columns());
  for (const StudyFamily& family : input.study().families) {
    const std::vector<NamedPoint> points = search_points(input, family);
    if (points.empty()) continue;
    for (const NamedPoint& point : points) add_search(table, input, family, point);
    section.heading(family.title);
    section.draw({violin_plot(points, "Random schedules at operating points")});
    section.verdict(best_of_sentence(family, best_of(points), settings.schedules, paper_search));
  }
  section.show(std::move(table));
  input.note_missing(section);
  section.note(
      std::string("One schedule is played on all blocks alike, and the best of many is picked with "
                  "the test text in hand; the policy sees each text for the first time. Regret: "
                  "policy minus the best random schedule. ") +
      short_frontier);
  return section;
}

Section single_section(ReportInput& input) {
  Section section{"single", "One axis, two levels", {}, {}};
  const auto& settings = input.study().experiments.single;
  FigureTable table(
      "single",
      fmt::format("Against {} random schedules of the nearest average that whole steps allow",
                  settings.schedules),
      search_columns());
  for (const StudyFamily& family : input.study().families) {
    const std::vector<NamedPoint> points = single_points(input, family);
    if (points.empty()) continue;
    for (const NamedPoint& point : points) add_search(table, input, family, point);
    const std::vector<NamedPoint> middle = labelled(points);
    section.heading(family.title);
    section.draw({violin_plot(middle, "Single-axis settings, middle budget")});
    section.verdict("Middle budgets. " +
                    best_of_sentence(family, best_of(middle), settings.schedules, paper_single));
  }
  section.show(std::move(table));
  input.note_missing(section);
  section.note(
      "The policy's average need be no multiple of a step's share of the episode, the random "
      "schedules' is: both net keep-rates stand in the table, and where they differ, regrets and "
      "ranks are of that, too.");
  return section;
}

}  // namespace sol
