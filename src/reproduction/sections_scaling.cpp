// Section 10: static methods, and the finest action space on this and other models.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <set>
#include <vector>

#include "base/fail.h"
#include "evaluation/report_page.h"
#include "evaluation/svg.h"
#include "policy/axis.h"
#include "reproduction/jobs.h"
#include "reproduction/sections.h"

namespace sol {
namespace {

struct StaticPoint {
  std::string label;
  Budget spent;
  double perplexity = 0;
};

// Whether a method drops something on an axis that the space leaves dense, or more than the space
// can.
bool beyond(const ActionSpace& space, const Budget& spent) {
  return std::ranges::any_of(all_axes, [&](Axis axis) {
    const float level = value(spent, axis);
    return level < space.levels(axis).front() || (!space.on(axis) && level < 1);
  });
}

std::vector<StaticPoint> static_points(const Json& json, const std::string& where) {
  std::vector<StaticPoint> points;
  if (!json.contains("points") || !json["points"].is_array())
    fail("{}: \"points\" must be a list", where);
  for (const Json& item : json["points"]) {
    const Action action = parse_action(json_get<std::string>(item, "action", where));
    points.push_back({json_get<std::string>(item, "label", where),
                      {action.kappa, action.rho, action.eta()},
                      json_get<double>(item, "perplexity", where)});
  }
  return points;
}

PlotSeries frontier_series(const Sweep& sweep, const std::vector<size_t>& frontier, bool policy) {
  PlotSeries series{.label = policy ? "policy" : "fixed",
                    .colour = policy ? policy_colour : baseline_colour(0),
                    .marker = policy ? Marker::circle : Marker::square,
                    .size = 3,
                    .line = true,
                    .dashed = !policy};
  for (const size_t i : frontier) {
    const Outcome& outcome = policy ? sweep.points[i].policy : sweep.points[i].realised.at(0);
    series.points.push_back({outcome.net_keep, outcome.perplexity});
  }
  return series;
}

// "Quest" and "30 %" of "Quest 30 %"; both are "dense" of dense steps.
std::string method_of(const std::string& label) {
  return label.substr(0, label.find(' '));
}
std::string level_of(const std::string& label) {
  return label.substr(std::min(label.size(), label.find(' ') + 1));
}

// Dense, and each method at its levels: the dense point uses no axis, every other one a single
// axis. The legend names the method, each mark its level.
std::vector<PlotSeries> static_series(const ActionSpace& space,
                                      const std::vector<StaticPoint>& points) {
  constexpr std::array<Marker, 4> markers{Marker::triangle, Marker::diamond, Marker::square,
                                          Marker::circle};
  std::array<PlotSeries, 4> series;  // of the three axes, and dense
  for (const StaticPoint& point : points) {
    if (beyond(space, point.spent)) continue;
    const auto used =
        std::ranges::find_if(all_axes, [&](Axis axis) { return value(point.spent, axis) < 1; });
    const auto axis = static_cast<size_t>(used - all_axes.begin());
    PlotSeries& one = series[axis];
    one.colour = axis < 3 ? baseline_colour(1 + axis) : "#2b333b";
    one.marker = markers[axis];
    one.size = 5;
    one.label = method_of(point.label);
    one.points.push_back(
        {space.net_keep_rate(point.spent), point.perplexity, point.label, level_of(point.label)});
  }
  std::vector<PlotSeries> found;
  for (PlotSeries& one : series)
    if (!one.points.empty()) found.push_back(std::move(one));
  return found;
}

// One model's frontiers with the points of those static methods on top that keep within its space.
std::string scaling_plot(const SweepView& view, const std::vector<StaticPoint>& points,
                         const std::string& title) {
  Plot plot{.title = title,
            .x = {.label = "net keep-rate"},
            .y = {.label = "perplexity"},
            .width = 470,
            .height = 400};
  plot.series = static_series(view.sweep.space, points);
  plot.series.push_back(frontier_series(view.sweep, view.summary.policy_frontier, true));
  if (!view.summary.realised_frontiers.empty())
    plot.series.push_back(frontier_series(view.sweep, view.summary.realised_frontiers[0], false));
  return render_svg(plot);
}

// The model, text and context that a study's figures are of, as its own directory says.
struct ScalingRow {
  std::string model, text;
  int context = 0;
};

ScalingRow described(const StudyResults& results) {
  const Json& identity = results.identity();
  const std::string where = (results.dir() / "study.json").string();
  ScalingRow row;
  row.model = json_get_or<std::string>(identity, "model", "?", where);
  row.context = json_get<int>(identity, "context", where);
  if (const auto test = identity.find("test"); test != identity.end() && test->is_object()) {
    if (test->contains("files"))
      for (const Json& file : (*test)["files"])
        row.text += (row.text.empty() ? "" : ", ") + json_get<std::string>(file, "name", where);
    const auto name = json_get_or<std::string>(*test, "name", "", where);
    const auto label = json_get_or<std::string>(*test, "label", name, where);
    if (label != name) row.text = fmt::format("{} ({})", label, row.text);
  }
  if (json_get_or(identity, "quick", false, where)) row.text += " (a quick run)";
  return row;
}

struct FinestSweep {
  std::string controller;
  const SweepView* view = nullptr;
};

// Of a family's controllers that `names` has too, the one with the largest space, the last of
// several: among those that have been swept, and the last name, which the section's jobs bring.
FinestSweep finest_sweep(ReportInput& input, const std::string& family,
                         const std::vector<std::string>& names,
                         const std::set<std::string>& present) {
  FinestSweep finest;
  for (const std::string& name : names) {
    const std::string job = sweep_job(family, name);
    if (!present.contains(name) || (name != names.back() && !input.results().has(job))) continue;
    const SweepView* view = input.sweep(job);
    if (view && (!finest.view || view->sweep.space.size() >= finest.view->sweep.space.size()))
      finest = {name, view};
  }
  return finest;
}

// The frontiers of every family's finest space, the one that the paper scales.
std::vector<std::string> scaling_of(ReportInput& input, FigureTable& table) {
  const Json& identity = input.results().identity();
  const std::string where = (input.results().dir() / "study.json").string();
  const ScalingRow about = described(input.results());
  std::vector<StaticPoint> points;
  if (const auto statics = input.find("static"))
    points = static_points(*statics, input.results().where("static"));
  // Lists of a file that may be another program's or damaged.
  const auto list = [&](const Json& object, const char* name) -> const Json& {
    if (!object.is_object() || !object.contains(name) || !object[name].is_array())
      fail("{}: {} must be a list", where, name);
    return object[name];
  };
  if (!identity.contains("spaces")) return {};
  const Json& controllers = list(identity["spaces"], "controllers");
  if (controllers.empty()) return {};
  std::vector<std::string> names;
  for (const Json& controller : controllers) {
    if (!controller.is_string()) fail("{}: controllers must be names", where);
    names.push_back(controller.get<std::string>());
  }

  std::vector<std::string> plots;
  for (const Json& family : list(identity, "families")) {
    const std::string name = json_get<std::string>(family, "name", where);
    std::set<std::string> present;
    for (const Json& controller : list(family, "controllers"))
      present.insert(json_get<std::string>(controller, "name", where));
    const auto [finest, view] = finest_sweep(input, name, names, present);
    if (!view) continue;
    plots.push_back(scaling_plot(*view, points,
                                 fmt::format("{}, {}, {}", about.model, finest,
                                             json_get<std::string>(family, "title", where))));
    const Comparison* row = view->summary.find("fixed", Matching::realised, Scope::inside);
    if (!row) continue;
    const double relative = row->test.relative();
    table.add({about.model, about.text, count(about.context), name, finest,
               number(view->sweep.dense.perplexity), number(row->test.policy.mean),
               number(row->test.baseline.mean), signed_percent(relative),
               share_of(row->test.win_rate)});
  }
  return plots;
}

}  // namespace

Section scaling_section(ReportInput& input, const std::vector<std::filesystem::path>& beside) {
  Section section{"scaling", "Models and static methods", {}, {}};
  FigureTable table("scaling", "The finest action space on each model, at realised averages",
                    {{"model", "Model"},
                     {"text", "Text"},
                     {"context", "Context"},
                     {"family", "Levels"},
                     {"controller", "Controller"},
                     {"dense_perplexity", "Dense"},
                     {"policy_perplexity", "Policy"},
                     {"fixed_perplexity", "Fixed"},
                     {"relative", "Relative"},
                     {"win_rate", "Wins"}});
  std::vector<std::string> plots = scaling_of(input, table);
  Section notes;
  for (const std::filesystem::path& dir : beside) {
    const StudyResults results = StudyResults::read(dir);
    ReportInput other(input.study(), results);
    std::ranges::move(scaling_of(other, table), std::back_inserter(plots));
    other.note_missing(notes, fmt::format("Of {}: ", described(results).model));
  }
  section.draw(plots);
  section.html += notes.html;
  section.markdown += notes.markdown;
  if (const auto statics = input.find("static")) {
    FigureTable points(
        "static", "Static methods, one knob each",
        {{"label", "Method"}, {"net_keep", "Net, of three axes"}, {"perplexity", "Perplexity"}});
    for (const StaticPoint& point : static_points(*statics, input.results().where("static"))) {
      const auto& [kappa, rho, eta] = point.spent;
      const double net =
          (static_cast<double>(kappa) + static_cast<double>(rho) + static_cast<double>(eta)) / 3;
      points.add({point.label, number(net, 3), number(point.perplexity)});
    }
    section.show(std::move(points));
  }
  section.show(std::move(table));
  input.note_missing(section);
  section.note(
      "Static methods use one knob and leave the others dense: Quest attends to that share of the "
      "keys (pages of 8), TEAL keeps that share of the MLP's input channels, ZeroQuant has so many "
      "activation bits. A plot has those that drop no more than its space can; the table has all. "
      "Perplexities of different models, texts and contexts do not compare; their gains do.");
  return section;
}

}  // namespace sol
