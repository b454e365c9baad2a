#include "reproduction/results.h"

#include <algorithm>
#include <map>

#include "base/fail.h"
#include "base/file_io.h"

namespace sol {
namespace {

constexpr int format_version = 2;  // 1 told files by their names only
// A sweep of a thousand budgets over hundreds of blocks stays well below this.
constexpr uint64_t job_limit = uint64_t{1} << 30;

// The first setting, by its path, in which two studies differ; empty when none does.
std::string first_difference(const Json& a, const Json& b, const std::string& path) {
  if (a.type() != b.type()) return path;
  if (a.is_object()) {
    for (const auto& [key, value] : a.items()) {
      const std::string inner = path.empty() ? key : path + "." + key;
      if (!b.contains(key)) return inner;
      const std::string found = first_difference(value, b[key], inner);
      if (!found.empty()) return found;
    }
    for (const auto& [key, value] : b.items())
      if (!a.contains(key)) return path.empty() ? key : path + "." + key;
    return {};
  }
  if (a.is_array()) {
    if (a.size() != b.size()) return path;
    for (size_t i = 0; i < a.size(); ++i) {
      const std::string found = first_difference(a[i], b[i], fmt::format("{}[{}]", path, i));
      if (!found.empty()) return found;
    }
    return {};
  }
  return a == b ? "" : path;
}

// A finished job, a controller or a training that can go on; why a job failed is none of these.
bool holds_results(const std::filesystem::path& part) {
  if (!path_exists(part)) return false;
  return std::ranges::any_of(
      std::filesystem::recursive_directory_iterator(part), [](const auto& entry) {
        return entry.path().extension() == ".json" || entry.path().extension() == ".safetensors";
      });
}

}  // namespace

StudyResults StudyResults::open(const std::filesystem::path& dir, const Json& identity) {
  for (const char* other : {"config.json", "controller.json"})
    if (path_exists(dir / other))
      fail("{} holds a model or a controller ({}); name another directory for a study",
           dir.string(), other);
  const std::filesystem::path file = dir / "study.json";
  if (path_exists(dir / "jobs") && !std::filesystem::is_empty(dir / "jobs") && !path_exists(file))
    fail("{} holds results, but study.json, which says of what, is missing; name another directory",
         dir.string());
  ensure_writable_directory(dir);
  ensure_writable_directory(dir / "jobs");
  StudyResults results(dir);
  // Where nothing has come of the study yet, another may take its place: its mistakes are mended.
  if (path_exists(file) && (holds_results(dir / "jobs") || holds_results(dir / "controllers"))) {
    results = read(dir);
    // Through text, as the other one: 3 is of another type there than an int's 3.
    const std::string difference =
        first_difference(results.identity_, parse_json(to_text(identity), "this study"), "");
    if (!difference.empty())
      fail("{} holds another study: it differs in {}; name another directory, or delete that one",
           dir.string(), difference);
    return results;
  }
  results.identity_ = identity;
  Json document = {{"format_version", format_version}};
  document.update(identity);
  write_file_atomically(file, to_text(document, 2) + "\n");
  return results;
}

StudyResults StudyResults::read(const std::filesystem::path& dir) {
  const std::filesystem::path file = dir / "study.json";
  if (!path_exists(file))
    fail("{} holds no study: {} is missing", dir.string(), file.filename().string());
  StudyResults results(dir);
  results.identity_ = read_json(file);
  const int version = json_get<int>(results.identity_, "format_version", file.string());
  if (version != format_version)
    fail("{}: format version {}, written by an {} program; this one knows {}", file.string(),
         version, version < format_version ? "older" : "newer", format_version);
  results.identity_.erase("format_version");
  return results;
}

void StudyResults::require_study(const Json& study) const {
  Json wanted = parse_json(to_text(study), "this study");
  // A study that does not ask for them does not speak of them either.
  if (identity_.contains("sweep_blocks") && !wanted.contains("sweep_blocks"))
    wanted["sweep_blocks"] = nullptr;
  for (const auto& [key, value] : wanted.items()) {
    const std::string difference =
        identity_.contains(key) ? first_difference(identity_[key], value, key) : key;
    if (!difference.empty())
      fail(
          "{} holds another study: it differs in {}; report it with the configuration and options "
          "it "
          "was run with",
          dir_.string(), difference);
  }
}

std::filesystem::path StudyResults::controller_dir(const std::string& family,
                                                   const std::string& controller) const {
  return dir_ / "controllers" / family / controller;
}

std::filesystem::path StudyResults::path(const std::string& job) const {
  return dir_ / "jobs" / (job + ".json");
}

std::string StudyResults::where(const std::string& job) const {
  return path(job).string();
}

bool StudyResults::has(const std::string& job) const {
  return path_exists(path(job));
}

Json StudyResults::read_job(const std::string& job) const {
  Json document;
  try {
    document = read_json(path(job), job_limit);
  } catch (const Error& error) {
    fail("{}; delete the file to run this job again", error.what());
  }
  if (!document.is_object() || !document.contains("result"))
    fail("{}: \"result\" is missing; delete the file to run this job again", where(job));
  return document;
}

std::optional<Json> StudyResults::find(const std::string& job) const {
  if (!has(job)) return std::nullopt;
  return read_job(job)["result"];
}

double StudyResults::seconds(const std::string& job) const {
  const Json document = read_job(job);
  const auto last = json_get<double>(document, "seconds", where(job));
  // Of a training that was resumed the result knows all of it.
  const Json& result = document["result"];
  const bool training = job.starts_with("train/") && result.contains("seconds");
  return training ? std::max(last, json_get<double>(result, "seconds", where(job))) : last;
}

std::string StudyResults::runs() const {
  std::map<std::string, int> jobs;
  const std::filesystem::path root = dir_ / "jobs";
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root)) {
    if (entry.path().extension() != ".json") continue;
    const std::string job =
        std::filesystem::relative(entry.path(), root).replace_extension().string();
    const Json document = read_job(job);
    const Json run = document.value("run", Json::object());
    const auto device = run.value("device", std::string(native_device));
    ++jobs[fmt::format("sol {}, commit {}; {}; {}; {} threads{}", run.value("version", "?"),
                       run.value("commit", "?"), run.value("cpu", "?"), run.value("isa", "?"),
                       run.value("threads", 0), device == native_device ? "" : "; " + device)];
  }
  std::string text;
  for (const auto& [run, count] : jobs)
    text += fmt::format("{}{} ({} jobs)", text.empty() ? "" : "; ", run, count);
  return text;
}

void StudyResults::store(const std::string& job, const Json& result, double seconds,
                         const RunInfo& run) {
  ensure_writable_directory(path(job).parent_path());
  const Json document = {{"seconds", seconds}, {"run", to_json(run)}, {"result", result}};
  write_file_atomically(path(job), to_text(document) + "\n");
  std::filesystem::remove(failure_path(job));
}

std::filesystem::path StudyResults::failure_path(const std::string& job) const {
  return dir_ / "jobs" / (job + ".failed.txt");
}

void StudyResults::store_failure(const std::string& job, const std::string& reason) {
  ensure_writable_directory(failure_path(job).parent_path());
  write_file_atomically(failure_path(job), reason + "\n");
}

std::optional<std::string> StudyResults::failure(const std::string& job) const {
  if (!path_exists(failure_path(job))) return std::nullopt;
  std::string reason = read_file(failure_path(job));
  if (reason.ends_with('\n')) reason.pop_back();
  return reason;
}

std::filesystem::path controller_dir(const StudyResults& results, const StudyFamily& family,
                                     const std::string& controller) {
  const StudyController* found = family.find(controller);
  return found && !found->ready.empty() ? found->ready
                                        : results.controller_dir(family.name, controller);
}

}  // namespace sol
