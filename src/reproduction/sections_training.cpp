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

std::vector<std::string> curves(const std::vector<Run>& runs) {
  return {curve(runs, "reward per step (nats)", [](const TrainingPoint& p) { return p.reward; }),
          curve(runs, "perplexity of the schedules",
                [](const TrainingPoint& p) { return p.perplexity; }),
          curve(runs, "largest gap to the budget (share)", largest_gap),
          curve(runs, "policy entropy (nats)", [](const TrainingPoint& p) { return p.entropy; })};
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
                     {"entropy", "Entropy, last (nats)"},
                     {"gap_kappa", "Gap of κ, last"},
                     {"gap_rho", "ρ"},
                     {"gap_eta", "η"},
                     {"largest_gap", "Largest gap, last"}});
  std::set<std::string> planned;  // no experiment may need a controller of a family
  for (const Job& job : plan_jobs(input.study())) planned.insert(job.name);
  std::vector<Run> shown;  // of one family
  const auto add = [&](const StudyFamily& family, const std::string& name) {
    const std::string job = train_job(family.name, name);
    if (!planned.contains(job)) return;
    const auto json = input.find(job);
    if (!json || json->contains("ready")) return;
    const TrainingSummary summary = training_summary_from_json(*json, input.results().where(job));
    const TrainingPoint& last = summary.curve.back();
    table.add({family.name, name, count(summary.policy_parameters), number(summary.updates, 0),
               number(summary.steps, 0), number(summary.seconds / 60, 1), number(last.perplexity),
               number(last.entropy, 3), number(last.gap[0], 3), number(last.gap[1], 3),
               number(last.gap[2], 3), number(largest_gap(last), 3)});
    const auto& spaces = input.study().experiments.spaces.controllers;
    if (std::ranges::find(spaces, name) != spaces.end()) shown.push_back({name, summary});
  };
  const auto& seeds = input.study().experiments.seeds;
  for (const StudyFamily& family : input.study().families) {
    shown.clear();
    for (const StudyController& controller : family.controllers) add(family, controller.name);
    for (const uint64_t seed : seeds.seeds)
      if (trained_again(family, seeds.controller)) add(family, reseeded(seeds.controller, seed));
    if (shown.empty()) continue;
    section.heading(family.title);
    section.draw(curves(shown));
  }
  section.show(std::move(table));
  input.note_missing(section);
  section.note(
      "Schedules are sampled for budgets drawn anew, so these perplexities are "
      "not those of evaluation. Minutes are wall time.");
  return section;
}

}  // namespace sol
