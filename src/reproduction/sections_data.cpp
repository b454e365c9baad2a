// No section of the page: the points and schedules behind its plots, for the files alone.
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "policy/action_json.h"
#include "policy/axis.h"
#include "reproduction/jobs.h"
#include "reproduction/sections.h"

namespace sol {
namespace {

const Figure nothing{"", nullptr};

void append(std::vector<Figure>& row, const Budget& budget) {
  for (const Axis axis : all_axes) row.push_back(number(shortest_decimal(value(budget, axis)), 3));
}

// `beginning`: the row up to what the policy was asked for.
void add_outcome(FigureTable& table, std::vector<Figure> beginning, const Outcome& outcome) {
  append(beginning, outcome.asked);
  append(beginning, outcome.realised);
  beginning.push_back(number(outcome.net_keep, 3));
  beginning.push_back(number(outcome.perplexity));
  table.add(std::move(beginning));
}

void add_sweep(FigureTable& table, const std::string& family, const std::string& controller,
               const Sweep& sweep) {
  add_outcome(table, {family, controller, nothing, nothing, "dense", nothing}, sweep.dense);
  for (size_t i = 0; i < sweep.points.size(); ++i) {
    const SweepPoint& point = sweep.points[i];
    const Figure place = count(static_cast<int64_t>(i) + 1), inside = count(point.inside ? 1 : 0);
    add_outcome(table, {family, controller, place, inside, sweep.policy, nothing}, point.policy);
    for (const Matching matching : {Matching::realised, Matching::requested}) {
      const std::vector<Outcome>& baselines = point.baselines(matching);
      for (size_t b = 0; b < baselines.size(); ++b)
        add_outcome(table,
                    {family, controller, place, inside, sweep.baselines.at(b),
                     std::string(to_string(matching))},
                    baselines[b]);
    }
  }
}

FigureTable sweep_points(ReportInput& input) {
  FigureTable table("sweep-points", "Sweeps over budgets",
                    {{"family", "Levels"},
                     {"controller", "Controller"},
                     {"point", "Point"},
                     {"inside", "Inside"},
                     {"policy", "Policy"},
                     {"baseline_at", "at averages"},
                     {"asked_kappa", "Asked κ"},
                     {"asked_rho", "ρ"},
                     {"asked_eta", "η"},
                     {"realised_kappa", "Realised κ"},
                     {"realised_rho", "ρ"},
                     {"realised_eta", "η"},
                     {"net_keep", "Net"},
                     {"perplexity", "Perplexity"}});
  for (const StudyFamily& family : input.study().families)
    for (const std::string& name : swept_controllers(input.study()))
      if (const SweepView* view = input.sweep(family, name))
        add_sweep(table, family.name, name, view->sweep);
  return table;
}

FigureTable schedules(ReportInput& input) {
  FigureTable table("schedules", "Random schedules",
                    {{"section", "Section"},
                     {"family", "Levels"},
                     {"controller", "Controller"},
                     {"point", "Point"},
                     {"random", "Random"},
                     {"net_keep", "Net"},
                     {"perplexity", "Perplexity"}});
  const StudyExperiments& experiments = input.study().experiments;
  for (const StudyFamily& family : input.study().families) {
    // `first`: the number of the job's first point.
    const auto add = [&](const char* section, const std::string& name, const std::string& job,
                         int64_t first) {
      const auto points = input.search(job);
      for (size_t i = 0; points && i < points->size(); ++i)
        for (const RandomSchedules& random : (*points)[i].random)
          for (const ScheduleOutcome& schedule : random.schedules)
            table.add({section, family.name, name, count(first + static_cast<int64_t>(i)),
                       random.policy, number(schedule.net_keep, 3), number(schedule.perplexity)});
    };
    for (const std::string& name : experiments.spaces.controllers) {
      if (!family.find(name)) continue;
      add("landscape", name, landscape_job(family.name, name), 1);
      for (int i = 0; i < experiments.search.points; ++i)
        add("search", name, search_job(family.name, name, i), i + 1);
    }
    for (const std::string& name : experiments.single.controllers)
      if (family.find(name)) add("single", name, single_job(family.name, name), 1);
  }
  return table;
}

}  // namespace

Section data_section(ReportInput& input) {
  Section section{"data", {}, {}, {}};
  section.tables.push_back(sweep_points(input));
  section.tables.push_back(schedules(input));
  std::erase_if(section.tables, [](const FigureTable& table) { return table.empty(); });
  return section;
}

}  // namespace sol
