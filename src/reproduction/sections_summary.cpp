// The study in short: its verdicts beside the paper's.
#include <fmt/format.h>

#include "evaluation/report_page.h"
#include "reproduction/paper_figures.h"
#include "reproduction/sections.h"

namespace sol {
namespace {

const Figure nothing{"", nullptr};

// A policy against fixed budgets; the paper compares at the requested ones.
void add_comparison(const StudyFamily& family, const std::string& name, const SweepView& view,
                    Matching matching, FigureTable& table) {
  const Comparison* row = view.summary.find("fixed", matching, Scope::inside);
  if (!row) return;
  const bool requested = matching == Matching::requested;
  const PairedTest& test = row->test;
  const PaperComparison* paper = requested ? paper_comparison(name, view.sweep.space) : nullptr;
  const auto relative = [&](double difference) {
    return signed_number(100 * difference / test.baseline.mean, 1);
  };
  const char* at = requested ? "the requested budgets" : "its averages";
  table.add({family.title,
             fmt::format("{}: mean perplexity against fixed at {}, 95 % interval", name, at),
             {fmt::format("{} % ({} .. {})", relative(test.difference.mean),
                          relative(row->interval.low), relative(row->interval.high)),
              test.relative()},
             paper ? signed_percent(paper->relative) : nothing});
  table.add({family.title, fmt::format("{}: budgets at which it is better than that", name),
             share_of(test.win_rate), paper ? share_of(paper->win_rate) : nothing});
}

void add_comparisons(ReportInput& input, const StudyFamily& family, FigureTable& table) {
  for (const std::string& name : spaces_and_horizons(input.study())) {
    const SweepView* view = input.sweep(family, name);
    if (!view) continue;
    for (const Matching matching : {Matching::realised, Matching::requested})
      add_comparison(family, name, *view, matching, table);
    table.add({family.title, fmt::format("{}: requests met on every axis", name),
               share_of(view->summary.adherence.front().all_axes_share), nothing});
  }
}

// Of the single axes that were swept, how many the policy wins.
void add_single_axes(ReportInput& input, const StudyFamily& family, FigureTable& table) {
  const auto& single = input.study().experiments.single;
  if (single.budgets == 0) return;
  int64_t axes = 0, better = 0, told_apart = 0;
  for (const std::string& name : single.controllers) {
    const SweepView* view = input.sweep(family, name);
    const Comparison* row =
        view ? view->summary.find("fixed", Matching::realised, Scope::inside) : nullptr;
    if (!row) continue;
    ++axes;
    better += row->test.difference.mean < 0 ? 1 : 0;
    told_apart += row->interval.high < 0 ? 1 : 0;
  }
  if (axes == 0) return;
  table.add({family.title,
             "single axes with a lower mean perplexity than fixed at the policy's averages",
             {fmt::format("{} of {}", better, axes), better},
             nothing});
  table.add({family.title,
             "of these, with an interval that excludes zero",
             {fmt::format("{} of {}", told_apart, axes), told_apart},
             nothing});
}

void add_best_of(const StudyFamily& family, const std::string& what, const BestOf& found,
                 const char* paper, FigureTable& table) {
  if (found.points > 0)
    table.add(
        {family.title, what, {fmt::format("{} of {}", found.won, found.points), found.won}, paper});
}

}  // namespace

Section summary_section(ReportInput& input) {
  Section section{"summary", "In short", {}, {}};
  FigureTable table(
      "summary", "In short",
      {{"levels", "Levels"}, {"what", "What"}, {"here", "Here"}, {"paper", "The paper"}});
  const StudyExperiments& experiments = input.study().experiments;
  for (const StudyFamily& family : input.study().families) {
    add_comparisons(input, family, table);
    add_best_of(family,
                fmt::format("points at which no schedule of {} random ones is better (the paper's "
                            "are drawn uniformly)",
                            experiments.search.schedules),
                best_of_search(input, family), paper_search, table);
    add_single_axes(input, family, table);
    add_best_of(family,
                fmt::format("single axes at whose middle budget no schedule of {} is better (of "
                            "whole steps, so not quite of the policy's average; the paper's are "
                            "drawn uniformly)",
                            experiments.single.schedules),
                best_of_single(input, family), paper_single, table);
  }
  section.show(std::move(table));
  return section;
}

}  // namespace sol
