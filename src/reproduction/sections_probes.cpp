// Sections 9 to 12: KV pollution, static methods and other models, training, and what the paper
// does not show.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/fail.h"
#include "evaluation/report_page.h"
#include "evaluation/svg.h"
#include "evaluation/sweep_plots.h"
#include "reproduction/experiment_json.h"
#include "reproduction/jobs.h"
#include "reproduction/sections.h"

namespace sol {
namespace {

constexpr std::array<const char*, 3> axis_names{"attention, κ", "MLP pruning, ρ",
                                                "quantisation, bits"};
constexpr std::array<const char*, 3> axis_colours{"#0072B2", "#D55E00", "#009E73"};
constexpr std::array<Marker, 3> axis_markers{Marker::circle, Marker::square, Marker::triangle};

std::string pollution_scatter(const Pollution& pollution) {
  Plot plot{.title = "Direct and delayed damage, by mechanism",
            .x = {.label = "perplexity of the compressed steps, change in %"},
            .y = {.label = "peak in the dense tail, 90th percentile, change in %"},
            .width = 620,
            .height = 440};
  for (size_t axis = 0; axis < 3; ++axis) {
    PlotSeries series{.label = axis_names[axis],
                      .colour = axis_colours[axis],
                      .marker = axis_markers[axis],
                      .size = 4,
                      .line = true,
                      .dashed = true};
    for (const PollutionSetting& setting : pollution.settings)
      if (static_cast<size_t>(setting.axis) == axis)
        series.points.push_back({setting.direct, setting.peak_p90, to_string(setting.action)});
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

// Of each axis the harshest setting.
std::vector<const PollutionSetting*> harshest(const Pollution& pollution) {
  std::array<const PollutionSetting*, 3> found{};
  for (const PollutionSetting& setting : pollution.settings) {
    const PollutionSetting*& at = found[static_cast<size_t>(setting.axis)];
    if (!at || setting.direct > at->direct) at = &setting;
  }
  std::vector<const PollutionSetting*> result;
  for (const PollutionSetting* setting : found)
    if (setting) result.push_back(setting);
  return result;
}

struct StaticPoint {
  std::string label;
  double net_keep, perplexity;
};

std::vector<StaticPoint> static_points(const Json& json, const std::string& where) {
  std::vector<StaticPoint> points;
  if (!json.contains("points") || !json["points"].is_array())
    fail("{}: \"points\" must be a list", where);
  for (const Json& item : json["points"])
    points.push_back({json_get<std::string>(item, "label", where),
                      json_get<double>(item, "net_keep", where),
                      json_get<double>(item, "perplexity", where)});
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

// One model's frontiers with the static methods' points on top.
std::string scaling_plot(const SweepView& view, const std::vector<StaticPoint>& points,
                         const std::string& title) {
  Plot plot{.title = title,
            .x = {.label = "net keep-rate"},
            .y = {.label = "perplexity"},
            .width = 470,
            .height = 400};
  constexpr std::array<Marker, 3> markers{Marker::triangle, Marker::diamond, Marker::square};
  for (size_t i = 0; i < points.size(); ++i) {
    PlotSeries one{.label = points[i].label,
                   .colour = i == 0 ? "#2b333b" : baseline_colour(1 + (i - 1) / 2),
                   .marker = markers[i % 3],
                   .size = 5};
    one.points.push_back({points[i].net_keep, points[i].perplexity});
    plot.series.push_back(std::move(one));
  }
  plot.series.push_back(frontier_series(view.sweep, view.summary.policy_frontier, true));
  if (!view.summary.realised_frontiers.empty())
    plot.series.push_back(frontier_series(view.sweep, view.summary.realised_frontiers[0], false));
  return render_svg(plot);
}

std::string scaling_of(ReportInput& input, FigureTable& table) {
  const auto& controllers = input.study().experiments.spaces.controllers;
  if (controllers.empty()) return {};
  const std::string model =
      json_get_or<std::string>(input.results().identity(), "model", "?", "study.json");
  const std::optional<Json> statics = input.find("static");
  std::vector<StaticPoint> points;
  if (statics) points = static_points(*statics, input.results().where("static"));
  std::string plots;
  // The finest space is the one that the paper scales.
  const std::string& finest = controllers.back();
  for (const StudyFamily& family : input.study().families) {
    const SweepView* view =
        family.find(finest) ? input.sweep(sweep_job(family.name, finest)) : nullptr;
    if (!view) continue;
    plots += scaling_plot(*view, points, fmt::format("{}, {}, {}", model, finest, family.title));
    const Comparison* row = view->summary.find("fixed", Matching::realised, Scope::inside);
    if (row)
      table.add(
          {model,
           family.name,
           finest,
           number(view->sweep.dense.perplexity),
           number(row->test.policy.mean),
           number(row->test.baseline.mean),
           {signed_number(100 * row->test.difference.mean / row->test.baseline.mean, 1) + " %",
            row->test.difference.mean / row->test.baseline.mean},
           share_of(row->test.win_rate)});
  }
  return plots;
}

struct Curve {
  const char* field;
  const char* label;
};

std::string training_curve(const std::vector<std::pair<std::string, Json>>& runs,
                           const Curve& curve) {
  Plot plot{.title = curve.label,
            .x = {.label = "updates"},
            .y = {.label = curve.label},
            .width = 470,
            .height = 340};
  for (size_t i = 0; i < runs.size(); ++i) {
    PlotSeries series{.label = runs[i].first,
                      .colour = i == 0 ? policy_colour : baseline_colour(i - 1),
                      .marker = Marker::none,
                      .line = true};
    for (const Json& point : runs[i].second["curve"]) {
      const Json& value = point[curve.field];
      double y = 0;
      if (value.is_array())
        for (const Json& axis : value) y = std::max(y, axis.get<double>());
      else
        y = value.get<double>();
      series.points.push_back({point["update"].get<double>(), y});
    }
    plot.series.push_back(std::move(series));
  }
  return render_svg(plot);
}

std::string behaviour_plot(const std::vector<StepGroup>& groups, const std::string& title,
                           const std::string& x_label, bool names) {
  Plot plot{.title = title,
            .x = {.label = x_label},
            .y = {.label = "mean over the steps", .low = 0.0, .high = 1.0},
            .width = names ? 640 : 470,
            .height = 340};
  const std::array<std::pair<const char*, double (*)(const StepGroup&)>, 4> lines{
      {{"net keep-rate", [](const StepGroup& g) { return g.net_keep; }},
       {"κ", [](const StepGroup& g) { return static_cast<double>(g.spent.kappa); }},
       {"ρ", [](const StepGroup& g) { return static_cast<double>(g.spent.rho); }},
       {"bits / 16", [](const StepGroup& g) { return static_cast<double>(g.spent.eta); }}}};
  for (size_t i = 0; i < lines.size(); ++i) {
    PlotSeries series{.label = lines[i].first,
                      .colour = i == 0 ? policy_colour : baseline_colour(i - 1),
                      .marker = axis_markers[i % 3],
                      .size = i == 0 ? 4.5 : 3,
                      .line = !names,
                      .dashed = i > 0};
    for (size_t g = 0; g < groups.size(); ++g)
      series.points.push_back({static_cast<double>(g + 1), lines[i].second(groups[g]),
                               fmt::format("{}: {} steps", groups[g].label, groups[g].steps)});
    plot.series.push_back(std::move(series));
  }
  for (size_t g = 0; g < groups.size(); ++g)
    plot.x.ticks.push_back({static_cast<double>(g + 1), groups[g].label});
  return render_svg(plot);
}

void add_groups(FigureTable& table, const std::string& family, const char* grouping,
                const std::vector<StepGroup>& groups) {
  for (const StepGroup& group : groups)
    table.add({family, grouping, group.label, count(group.steps), number(group.spent.kappa, 3),
               number(group.spent.rho, 3), number(16.0 * group.spent.eta, 2),
               number(group.net_keep, 3), number(group.surprisal, 3), number(group.increase, 3)});
}

void show_behaviour(ReportInput& input, Section& section) {
  FigureTable table("behaviour", "What the policy spends on which steps",
                    {{"family", "Levels"},
                     {"grouping", "Grouped by"},
                     {"group", "Group"},
                     {"steps", "Steps"},
                     {"kappa", "κ"},
                     {"rho", "ρ"},
                     {"bits", "Bits"},
                     {"net_keep", "Net"},
                     {"surprisal", "Surprisal, dense (nats)"},
                     {"increase", "Increase (nats)"}});
  for (const StudyFamily& family : input.study().families) {
    const std::string& name = input.study().experiments.behaviour.controller;
    if (!family.find(name)) continue;
    const std::string job = behaviour_job(family.name, name);
    const auto json = input.find(job);
    if (!json) continue;
    const Behaviour behaviour = behaviour_from_json(*json, input.results().where(job));
    section.html += fmt::format(
        "<h3>What {} has learned: {}</h3>\n<p>Spearman's rank correlation of a step's net "
        "keep-rate with the surprisal of its target is {}, with that of the current token {}.</p>\n"
        "<div class=\"row\">\n{}{}{}{}</div>\n",
        escape_xml(name), escape_xml(family.title), signed_number(behaviour.rank_correlation, 2),
        signed_number(behaviour.rank_correlation_previous, 2),
        behaviour_plot(behaviour.by_surprisal, "By surprisal of the target",
                       "tenth of the steps, least surprising first", false),
        behaviour_plot(behaviour.by_previous, "By surprisal of the current token",
                       "tenth of the steps, least surprising first", false),
        behaviour_plot(behaviour.by_step, "By position in the episode", "step t", false),
        behaviour_plot(behaviour.by_kind, "By kind of the current token", "kind of token", true));
    add_groups(table, family.name, "target's surprisal", behaviour.by_surprisal);
    add_groups(table, family.name, "current token's surprisal", behaviour.by_previous);
    add_groups(table, family.name, "step", behaviour.by_step);
    add_groups(table, family.name, "kind", behaviour.by_kind);
  }
  if (!table.empty()) section.tables.push_back(std::move(table));
}

void show_time(ReportInput& input, Section& section) {
  const std::string& name = input.study().experiments.timed.controller;
  std::string plots;
  FigureTable table("time", "Quality against measured time, one sequence at a time",
                    {{"family", "Levels"},
                     {"controller", "Controller"},
                     {"policy", "Policy"},
                     {"net_keep", "Net"},
                     {"perplexity", "Perplexity"},
                     {"milliseconds", "ms per token"}});
  for (const StudyFamily& family : input.study().families) {
    const SweepView* view = family.find(name) ? input.sweep(timed_job(family.name, name)) : nullptr;
    if (!view) continue;
    plots += frontier_plot(view->sweep, view->summary, milliseconds,
                           fmt::format("{}: {}", name, family.title),
                           "milliseconds per token, policy and refresh included", 480, 400);
    const auto add = [&](const std::string& policy, const Outcome& outcome) {
      table.add({family.name, name, policy, number(outcome.net_keep, 3), number(outcome.perplexity),
                 number(milliseconds(outcome), 3)});
    };
    add("dense", view->sweep.dense);
    for (const SweepPoint& point : view->sweep.points) {
      add(view->sweep.policy, point.policy);
      add("fixed", point.realised.at(0));
    }
  }
  if (plots.empty()) return;
  section.html +=
      "<h3>Quality against measured time</h3>\n<div class=\"row\">\n" + plots + "</div>\n";
  section.show(std::move(table));
}

void show_free(ReportInput& input, Section& section) {
  const auto& settings = input.study().experiments.free;
  FigureTable table("free",
                    fmt::format("Greedy text of {} tokens after {} of the test text",
                                settings.tokens, settings.prompt_tokens),
                    {{"family", "Levels"},
                     {"policy", "Policy"},
                     {"net_keep", "Net"},
                     {"perplexity", "Perplexity, dense model"},
                     {"repetition", "Repeated 4-grams"},
                     {"agreement", "As dense"},
                     {"first_difference", "Tokens before the first difference"}});
  for (const StudyFamily& family : input.study().families) {
    if (!family.find(settings.controller)) continue;
    const std::string job = free_job(family.name, settings.controller);
    const auto json = input.find(job);
    if (!json) continue;
    const FreeGeneration found = free_generation_from_json(*json, input.results().where(job));
    const auto add = [&](const char* policy, const FreeOutcome& outcome) {
      table.add({family.name, policy, number(outcome.net_keep, 3), number(outcome.perplexity),
                 share_of(outcome.repetition), share_of(outcome.agreement),
                 number(outcome.first_difference, 1)});
    };
    add("dense", found.dense);
    for (const FreePair& pair : found.pairs) {
      add("learned", pair.policy);
      add("fixed", pair.fixed);
    }
  }
  section.show(std::move(table));
}

void show_transfer(ReportInput& input, Section& section) {
  const auto& settings = input.study().experiments.transfer;
  FigureTable table("transfer",
                    fmt::format("{} on other text and other contexts, against fixed at realised "
                                "averages",
                                settings.controller),
                    {{"family", "Levels"},
                     {"what", "Text or context"},
                     {"blocks", "Blocks"},
                     {"dense_perplexity", "Dense"},
                     {"policy_perplexity", "Policy"},
                     {"fixed_perplexity", "Fixed"},
                     {"relative", "Relative"},
                     {"interval_low", "95 % from"},
                     {"interval_high", "to"},
                     {"win_rate", "Wins"},
                     {"met", "Requests met"}});
  for (const StudyFamily& family : input.study().families) {
    if (!family.find(settings.controller)) continue;
    std::vector<std::string> whats;
    for (const StudyText& text : settings.texts) whats.push_back(text.label);
    for (const int context : settings.contexts) whats.push_back(fmt::format("context-{}", context));
    for (const std::string& what : whats) {
      const SweepView* view = input.sweep(transfer_job(family.name, settings.controller, what));
      const Comparison* row =
          view ? view->summary.find("fixed", Matching::realised, Scope::inside) : nullptr;
      if (!row) continue;
      const double relative = row->test.difference.mean / row->test.baseline.mean;
      table.add({family.name,
                 what,
                 count(static_cast<int64_t>(view->sweep.blocks.size())),
                 number(view->sweep.dense.perplexity),
                 number(row->test.policy.mean),
                 number(row->test.baseline.mean),
                 {signed_number(100 * relative, 1) + " %", relative},
                 {signed_number(row->interval.low), row->interval.low},
                 {signed_number(row->interval.high), row->interval.high},
                 share_of(row->test.win_rate),
                 share_of(view->summary.adherence.front().all_axes_share)});
    }
  }
  section.show(std::move(table));
}

}  // namespace

Section pollution_section(ReportInput& input) {
  Section section{"pollution", "KV pollution", {}, {}};
  const PollutionOptions& options = input.study().experiments.pollution;
  const auto json = input.find("pollution");
  if (!json) {
    section.html = input.missing();
    return section;
  }
  const Pollution pollution = pollution_from_json(*json, input.results().where("pollution"));
  section.html = pollution_scatter(pollution) + "<div class=\"row\">\n";
  for (const PollutionSetting* setting : harshest(pollution)) section.html += tail_plot(*setting);
  section.html += "</div>\n";
  FigureTable table("pollution", "Change of perplexity against the dense run, in %",
                    {{"action", "Action"},
                     {"direct", "Compressed steps"},
                     {"tail", "Dense tail, mean"},
                     {"peak_p90", "Tail, 90 % of peaks"}});
  for (const PollutionSetting& setting : pollution.settings)
    table.add({to_string(setting.action), number(setting.direct), number(setting.tail, 3),
               number(setting.peak_p90)});
  section.show(std::move(table));
  section.html += fmt::format(
      "<p class=\"note\">{} windows: {} dense tokens, {} steps under the action, {} dense ones. "
      "The peak is each window's largest change at one step of the tail. Curves: the harshest "
      "setting of each axis.</p>\n",
      pollution.windows.size(), options.prefix, options.corrupted, options.tail);
  return section;
}

Section scaling_section(ReportInput& input, const std::vector<std::filesystem::path>& beside) {
  Section section{"scaling", "Models and static methods", {}, {}};
  FigureTable table("scaling", "The finest action space on each model, at realised averages",
                    {{"model", "Model"},
                     {"family", "Levels"},
                     {"controller", "Controller"},
                     {"dense_perplexity", "Dense"},
                     {"policy_perplexity", "Policy"},
                     {"fixed_perplexity", "Fixed"},
                     {"relative", "Relative"},
                     {"win_rate", "Wins"}});
  std::string plots = scaling_of(input, table);
  for (const std::filesystem::path& dir : beside) {
    const StudyResults results = StudyResults::read(dir);
    ReportInput other(input.study(), results);
    plots += scaling_of(other, table);
    section.html += other.missing();
  }
  section.html = "<div class=\"row\">\n" + plots + "</div>\n" + section.html;
  if (const auto statics = input.find("static")) {
    FigureTable points("static", "Static methods, one knob each",
                       {{"label", "Method"}, {"net_keep", "Net"}, {"perplexity", "Perplexity"}});
    for (const StaticPoint& point : static_points(*statics, input.results().where("static")))
      points.add({point.label, number(point.net_keep, 3), number(point.perplexity)});
    section.show(std::move(points));
  }
  section.show(std::move(table));
  section.html += input.missing();
  return section;
}

Section training_section(ReportInput& input) {
  Section section{"training", "Training", {}, {}};
  FigureTable table("training", "What the controllers cost",
                    {{"family", "Levels"},
                     {"controller", "Controller"},
                     {"parameters", "Parameters"},
                     {"updates", "Updates"},
                     {"steps", "Decoded steps"},
                     {"minutes", "Minutes"},
                     {"perplexity", "Perplexity, last"},
                     {"largest_gap", "Largest gap, last"}});
  std::vector<std::pair<std::string, Json>> shown;
  for (const StudyFamily& family : input.study().families)
    for (const StudyController& controller : family.controllers) {
      const auto json = input.find(train_job(family.name, controller.name));
      if (!json || json->contains("ready")) continue;
      const std::string where = input.results().where(train_job(family.name, controller.name));
      const Json& last = (*json)["curve"].back();
      double gap = 0;
      for (const Json& axis : last["gap"]) gap = std::max(gap, axis.get<double>());
      table.add({family.name, controller.name,
                 count(json_get<int64_t>(*json, "policy_parameters", where)),
                 number(json_get<double>(*json, "updates", where), 0),
                 number(json_get<double>(*json, "steps", where), 0),
                 number(json_get<double>(*json, "seconds", where) / 60, 1),
                 number(json_get<double>(last, "perplexity", where)), number(gap, 3)});
      const auto& spaces = input.study().experiments.spaces.controllers;
      if (std::ranges::find(spaces, controller.name) != spaces.end() && shown.size() < 5)
        shown.emplace_back(fmt::format("{} {}", family.name, controller.name), *json);
    }
  if (!shown.empty()) {
    section.html = "<div class=\"row\">\n";
    for (const Curve& curve :
         {Curve{"reward", "reward per step"}, Curve{"perplexity", "perplexity of the schedules"},
          Curve{"gap", "largest gap to the budget"}, Curve{"entropy", "policy entropy (nats)"}})
      section.html += training_curve(shown, curve);
    section.html += "</div>\n";
  }
  section.show(std::move(table));
  section.html += input.missing();
  section.html +=
      "<p class=\"note\">Schedules are sampled at temperature 1.3 for budgets drawn anew, so these "
      "perplexities are not those of evaluation. Minutes are wall time on this machine.</p>\n";
  return section;
}

Section ours_section(ReportInput& input) {
  Section section{"ours", "Beyond the paper", {}, {}};
  show_time(input, section);
  show_behaviour(input, section);
  show_free(input, section);
  show_transfer(input, section);
  section.html += input.missing();
  return section;
}

}  // namespace sol
