// Running a study's jobs, those that are not finished yet.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "engine/run_info.h"
#include "reproduction/jobs.h"

namespace sol {

struct StudyProgress {
  std::string job;
  size_t number = 0, jobs = 0;  // this one's, from 1, and how many are left to do in all
  double share = 0;             // of this job
  double seconds_left = -1;     // of all; < 0: not known yet
};

struct StudyCallbacks {
  std::function<void(const StudyProgress&)> on_progress;
  std::function<void(const std::string& job, double seconds)> on_finished;
  std::function<void(const std::string& job, const std::string& error)> on_failed;
};

struct StudyOutcome {
  size_t finished = 0;              // in this call
  std::vector<std::string> failed;  // jobs whose error was reported, and those that needed them
};

// Runs in order what has no result yet: of the named sections (empty: of all), with what they need.
// A job that fails is reported, those that need it are left out, and the rest goes on. Throws
// Cancelled when a stop is requested: what has finished stays.
StudyOutcome run_study(Laboratory& lab, const RunInfo& run, const std::set<std::string>& sections,
                       const StudyCallbacks& callbacks);

// Jobs of these sections and those they need, in order, finished or not.
std::vector<Job> wanted_jobs(const Study& study, const std::set<std::string>& sections);

}  // namespace sol
