#include "reproduction/run.h"

#include <algorithm>

#include "base/fail.h"
#include "base/stopwatch.h"

namespace sol {
namespace {

// Jobs differ in kind, so the rate of work is taken over all that has been done.
class Remaining {
 public:
  explicit Remaining(const std::vector<Job>& jobs) {
    for (const Job& job : jobs) left_ += job.work;
  }
  double seconds(const Job& job, double share) const {
    const double done = done_ + share * job.work;
    const double elapsed = stopwatch_.seconds();
    if (done <= 0 || elapsed < 5) return -1;
    return elapsed / done * (left_ - share * job.work);
  }
  void finish(const Job& job) {
    done_ += job.work;
    left_ -= job.work;
  }
  void leave_out(const Job& job) { left_ -= job.work; }

 private:
  Stopwatch stopwatch_;
  double done_ = 0, left_ = 0;
};

}  // namespace

std::vector<Job> wanted_jobs(const Study& study, const std::set<std::string>& sections) {
  for (const std::string& section : sections)
    if (std::ranges::find(section_names(), section) == section_names().end()) {
      std::string known;
      for (const std::string& name : section_names()) known += (known.empty() ? "" : ", ") + name;
      fail("there is no section \"{}\"; known: {}", section, known);
    }
  std::vector<Job> jobs = plan_jobs(study);
  if (sections.empty()) return jobs;
  std::set<std::string> wanted;
  // From the end: what a job needs stands before it.
  for (auto job = jobs.rbegin(); job != jobs.rend(); ++job)
    if (sections.contains(job->section) || wanted.contains(job->name)) {
      wanted.insert(job->name);
      wanted.insert(job->after.begin(), job->after.end());
    }
  std::erase_if(jobs, [&](const Job& job) { return !wanted.contains(job.name); });
  return jobs;
}

StudyOutcome run_study(Laboratory& lab, const RunInfo& run, const std::set<std::string>& sections,
                       const StudyCallbacks& callbacks) {
  std::vector<Job> jobs = wanted_jobs(lab.study(), sections);
  std::erase_if(jobs, [&](const Job& job) { return lab.results().has(job.name); });

  StudyOutcome outcome;
  std::set<std::string> failed;
  Remaining remaining(jobs);
  const auto give_up = [&](const Job& job, const std::string& reason) {
    failed.insert(job.name);
    outcome.failed.push_back(job.name);
    remaining.leave_out(job);
    try {
      lab.results().store_failure(job.name, reason);
    } catch (const std::exception&) {  // the disk may be full: what failed is told all the same
    }
    if (callbacks.on_failed) callbacks.on_failed(job.name, reason);
  };
  for (size_t i = 0; i < jobs.size(); ++i) {
    const Job& job = jobs[i];
    if (lab.stop().stop_requested()) throw Cancelled();
    const auto missing =
        std::ranges::find_if(job.after, [&](const auto& name) { return failed.contains(name); });
    if (missing != job.after.end()) {
      give_up(job, fmt::format("it needs {}, which failed", *missing));
      continue;
    }
    const auto report = [&](int64_t done, int64_t total) {
      const double share = total > 0 ? static_cast<double>(done) / static_cast<double>(total) : 0.0;
      if (callbacks.on_progress)
        callbacks.on_progress({job.name, i + 1, jobs.size(), share, remaining.seconds(job, share)});
    };
    report(0, 1);
    const Stopwatch stopwatch;
    try {
      const Json result = job.run(lab, report);
      lab.results().store(job.name, result, stopwatch.seconds(), run);
    } catch (const Cancelled&) {
      throw;
    } catch (const std::exception& error) {  // of any kind: a day's work must not end with it
      give_up(job, error.what());
      continue;
    }
    remaining.finish(job);
    ++outcome.finished;
    if (callbacks.on_finished) callbacks.on_finished(job.name, stopwatch.seconds());
  }
  return outcome;
}

}  // namespace sol
