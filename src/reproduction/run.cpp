#include "reproduction/run.h"

#include <algorithm>

#include "base/fail.h"
#include "base/stopwatch.h"

namespace sol {
namespace {

// Work of training and of evaluation is guessed in unlike ways, so each has its own rate, taken
// over all of its jobs that have been done; until there is one, the other's.
class Remaining {
 public:
  explicit Remaining(const std::vector<Job>& jobs) {
    for (const Job& job : jobs) of(job).left += job.work;
  }
  // While a share of a job is done, which took so long; negative where nothing tells.
  double seconds(const Job& job, double share, double elapsed) const {
    Remaining now = *this;
    if (share > 0) now.count(job, share, elapsed);
    const Kind &training = now.training_, &evaluation = now.evaluation_;
    if (training.seconds + evaluation.seconds < 5) return -1;
    return training.left * training.rate_or(evaluation) +
           evaluation.left * evaluation.rate_or(training);
  }
  void finish(const Job& job, double seconds) { count(job, 1, seconds); }
  void leave_out(const Job& job) { of(job).left -= job.work; }

 private:
  struct Kind {
    double seconds = 0, done = 0, left = 0;
    double rate_or(const Kind& other) const {
      return done > 0 ? seconds / done : other.seconds / other.done;
    }
  };
  Kind& of(const Job& job) { return job.name.starts_with("train/") ? training_ : evaluation_; }
  void count(const Job& job, double share, double seconds) {
    Kind& kind = of(job);
    kind.seconds += seconds;
    kind.done += share * job.work;
    kind.left -= share * job.work;
  }
  Kind training_, evaluation_;
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
    if (std::ranges::any_of(job->sections,
                            [&](const auto& section) { return sections.contains(section); }) ||
        wanted.contains(job->name)) {
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
  const auto give_up = [&](const Job& job, const std::string& reason, bool own) {
    failed.insert(job.name);
    outcome.failed.push_back(job.name);
    remaining.leave_out(job);
    try {
      // What another's failure caused is not kept: it would outlive its reason.
      if (own) lab.results().store_failure(job.name, reason);
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
      give_up(job, fmt::format("it needs {}, which failed", *missing), false);
      continue;
    }
    const Stopwatch stopwatch;
    const auto report = [&](int64_t done, int64_t total) {
      const double share = total > 0 ? static_cast<double>(done) / static_cast<double>(total) : 0.0;
      if (callbacks.on_progress)
        callbacks.on_progress({job.name, i + 1, jobs.size(), share,
                               remaining.seconds(job, share, stopwatch.seconds())});
    };
    report(0, 1);
    try {
      const Json result = job.run(lab, report);
      lab.results().store(job.name, result, stopwatch.seconds(), run);
    } catch (const Cancelled&) {
      throw;
    } catch (const std::exception& error) {  // of any kind: a day's work must not end with it
      give_up(job, error.what(), true);
      continue;
    }
    remaining.finish(job, stopwatch.seconds());
    ++outcome.finished;
    if (callbacks.on_finished) callbacks.on_finished(job.name, stopwatch.seconds());
  }
  return outcome;
}

}  // namespace sol
