// Section 11: what training cost, and how it went.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "evaluation/report_page.h"
#include "evaluation/svg.h"
#include "reproduction/jobs.h"
#include "reproduction/sections.h"
#include "reproduction/training_log.h"

namespace sol {
namespace {

struct Run {
  std::string label;
  TrainingSummary summary;
};

double largest_gap(const TrainingPoint& point) {
  return *std::ranges::max_element(point.gap);
}

std::string curve(const std::vector<Run>& runs, const char* label,
                  double (*value)(const TrainingPoint&)) {
  Plot plot{.title = label,
            .x = {.label = "updates"},
            .y = {.label = label},
            .width = 470,
            .height = 340};
  for (size_t i = 0; i < runs.size(); ++i) {
    PlotSeries series{.label = runs[i].label,
                      .colour = i == 0 ? policy_colour : baseline_colour(i - 1),
                      .marker = Marker::none,
                      .line = true};
    for (const TrainingPoint& point : runs[i].summary.curve)
      series.points.push_back({point.update, value(point)});
    plot.series.push_back(std::move(series));
  }
  return render_svg(plot);
}

}  // namespace

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
  std::vector<Run> shown;
  std::set<std::string> planned;  // no experiment may need a controller of a family
  for (const Job& job : plan_jobs(input.study())) planned.insert(job.name);
  const auto add = [&](const StudyFamily& family, const std::string& name) {
    const std::string job = train_job(family.name, name);
    if (!planned.contains(job)) return;
    const auto json = input.find(job);
    if (!json || json->contains("ready")) return;
    const TrainingSummary summary = training_summary_from_json(*json, input.results().where(job));
    const TrainingPoint& last = summary.curve.back();
    table.add({family.name, name, count(summary.policy_parameters), number(summary.updates, 0),
               number(summary.steps, 0), number(summary.seconds / 60, 1), number(last.perplexity),
               number(largest_gap(last), 3)});
    const auto& spaces = input.study().experiments.spaces.controllers;
    if (std::ranges::find(spaces, name) != spaces.end() && shown.size() < 5)
      shown.push_back({fmt::format("{} {}", family.name, name), summary});
  };
  const auto& seeds = input.study().experiments.seeds;
  for (const StudyFamily& family : input.study().families) {
    for (const StudyController& controller : family.controllers) add(family, controller.name);
    for (const uint64_t seed : seeds.seeds)
      if (trained_again(family, seeds.controller)) add(family, reseeded(seeds.controller, seed));
  }
  if (!shown.empty()) {
    section.html = "<div class=\"row\">\n";
    section.html +=
        curve(shown, "reward per step", [](const TrainingPoint& p) { return p.reward; });
    section.html += curve(shown, "perplexity of the schedules",
                          [](const TrainingPoint& p) { return p.perplexity; });
    section.html += curve(shown, "largest gap to the budget", largest_gap);
    section.html +=
        curve(shown, "policy entropy (nats)", [](const TrainingPoint& p) { return p.entropy; });
    section.html += "</div>\n";
  }
  section.show(std::move(table));
  input.note_missing(section);
  section.note(
      "Schedules are sampled for budgets drawn anew, so these perplexities are "
      "not those of evaluation. Minutes are wall time.");
  return section;
}

}  // namespace sol
