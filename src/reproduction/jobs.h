// A study as a list of jobs, each of which leaves one result file.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "reproduction/laboratory.h"

namespace sol {

struct Job {
  std::string name;                   // "sweep/paper/2l": its file under jobs/
  std::vector<std::string> sections;  // of the report that show it, the first one's is its place
  std::vector<std::string> after;     // jobs that must have finished
  double work = 0;                    // roughly, in decoded tokens, to estimate the time left
  const StudyText* reads = nullptr;   // of the study, while it lives; null: no text
  std::function<Json(Laboratory&, const SweepProgress&)> run;
};

// The sections' names, in the order of work.
const std::vector<std::string>& section_names();

// In the order of work: every job stands behind those it needs.
std::vector<Job> plan_jobs(const Study& study);

// Names of jobs, for those who write results and those who read them.
std::string train_job(const std::string& family, const std::string& controller);
std::string frontier_job(const std::string& family, const std::string& controller);
std::string sweep_job(const std::string& family, const std::string& controller);
std::string heuristics_job(const std::string& family, const std::string& controller);
std::string landscape_job(const std::string& family, const std::string& controller);
std::string search_job(const std::string& family, const std::string& controller, int point);
std::string single_job(const std::string& family, const std::string& controller);
std::string timed_job(const std::string& family, const std::string& controller);
std::string behaviour_job(const std::string& family, const std::string& controller);
std::string free_job(const std::string& family, const std::string& controller);
// `what`: a text's name or "context-256".
std::string transfer_job(const std::string& family, const std::string& controller,
                         const std::string& what);

}  // namespace sol
