// A study's directory: what every finished job found.
//   study.json         the study and the model; a directory holds one study
//   controllers/       F/C: the trained controllers
//   jobs/              one file per finished job; its name is the job's
//                      (JOB.failed.txt: why one has none)
//   report.html, report.md, csv/  made from the jobs at any time
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "base/json.h"
#include "engine/run_info.h"
#include "reproduction/study.h"

namespace sol {

class StudyResults {
 public:
  // Opens `dir`, which is made where it does not exist. Throws Error when it holds another study,
  // or the same of another model: naming the first setting that differs.
  static StudyResults open(const std::filesystem::path& dir, const Json& identity);
  // Only to read. Throws Error when there is no study in it.
  static StudyResults read(const std::filesystem::path& dir);

  // Throws Error naming the first setting of `study` (Study::to_json) that this directory's study
  // does not have.
  void require_study(const Json& study) const;

  const std::filesystem::path& dir() const { return dir_; }
  const Json& identity() const { return identity_; }
  std::filesystem::path controller_dir(const std::string& family,
                                       const std::string& controller) const;

  // The result of a finished job; nothing when it has not finished. Throws Error for a damaged
  // file.
  std::optional<Json> find(const std::string& job) const;
  bool has(const std::string& job) const;
  std::string where(const std::string& job) const;  // its file, for messages
  // Atomically: a job is finished or not. `seconds`: its wall time; `run`: what it was made by.
  void store(const std::string& job, const Json& result, double seconds, const RunInfo& run);
  // Why a job has no result: kept until it has one.
  void store_failure(const std::string& job, const std::string& reason);
  std::optional<std::string> failure(const std::string& job) const;
  // Programs, commits and machines that the finished jobs were made by, in words.
  std::string runs() const;
  // How long a finished job took.
  double seconds(const std::string& job) const;

 private:
  explicit StudyResults(std::filesystem::path dir) : dir_(std::move(dir)) {}
  std::filesystem::path path(const std::string& job) const;
  std::filesystem::path failure_path(const std::string& job) const;
  Json read_job(const std::string& job) const;
  std::filesystem::path dir_;
  Json identity_;
};

// Where a family's controller lies: one that is ready where the study says, one that is trained
// among the results.
std::filesystem::path controller_dir(const StudyResults& results, const StudyFamily& family,
                                     const std::string& controller);

}  // namespace sol
