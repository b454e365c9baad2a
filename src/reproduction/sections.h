// The report's sections, in its order. Each says what has not been run.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "evaluation/random_search.h"
#include "evaluation/sweep_summary.h"
#include "reproduction/figures.h"
#include "reproduction/results.h"
#include "reproduction/study.h"

namespace sol {

struct SweepView {
  Sweep sweep;
  SweepSummary summary;
};

// What sections read. Sweeps are read and summarised once.
class ReportInput {
 public:
  ReportInput(const Study& study, const StudyResults& results) : study_(study), results_(results) {}

  const Study& study() const { return study_; }
  const StudyResults& results() const { return results_; }
  // Null where the job has not finished; noted then, for note_missing().
  const SweepView* sweep(const std::string& job);
  // A controller's sweep over budgets; null, and not noted, also where the family has no such one.
  const SweepView* sweep(const StudyFamily& family, const std::string& controller);
  std::optional<std::vector<SearchPoint>> search(const std::string& job);
  std::optional<Json> find(const std::string& job);
  // The levels of the axes that a controller chooses on, in words; empty while there is none.
  std::string levels(const StudyFamily& family, const std::string& controller) const;

  // Notes the jobs that were asked for in vain since the last call, if any; `of` begins the notes.
  void note_missing(Section& section, const std::string& of = {});

 private:
  const Study& study_;
  const StudyResults& results_;
  std::map<std::string, std::unique_ptr<SweepView>> sweeps_;
  std::vector<std::string> missing_;
};

// At how many points a family's policies are at least as good as the best random schedule.
struct BestOf {
  int64_t won = 0, points = 0;
};
BestOf best_of_search(ReportInput& input, const StudyFamily& family);  // every point
BestOf best_of_single(ReportInput& input, const StudyFamily& family);  // each setting's middle one

Section summary_section(ReportInput& input);     // the verdicts beside the paper's
Section spaces_section(ReportInput& input);      // 1: frontiers of 2L, 3L, FL
Section statistics_section(ReportInput& input);  // 2: paired comparisons
Section adherence_section(ReportInput& input);   // 3: requested against realised
Section heuristics_section(ReportInput& input);  // 4: EMC and DAC
Section landscape_section(ReportInput& input);   // 5: random schedules, densities
Section search_section(ReportInput& input);      // 6: policy against many random schedules
Section single_section(ReportInput& input);      // 7: one axis, two levels
Section horizons_section(ReportInput& input);    // 8: T = 4, 16, 64
Section pollution_section(ReportInput& input);   // 9: KV pollution
// 10: static methods; `beside`: results of other models.
Section scaling_section(ReportInput& input, const std::vector<std::filesystem::path>& beside);
Section training_section(ReportInput& input);  // 11: cost and curves
Section ours_section(ReportInput& input);      // 12: time, behaviour, transfer
Section data_section(ReportInput& input);      // for the files alone: what plots are drawn from

}  // namespace sol
