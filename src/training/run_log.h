// What a run records while it goes: OUT/train.jsonl, one JSON object per collection, and the same
// figures in TensorBoard's event files.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

#include "base/json.h"
#include "training/event_file.h"
#include "training/json_log.h"
#include "training/metrics.h"

namespace sol {

class RunLog {
 public:
  explicit RunLog(std::filesystem::path dir) : dir_(std::move(dir)), lines_(path(dir_)) {}

  // Keeps the lines of an existing log up to this collection, the last one that the checkpoint
  // knows of, and drops the rest; returns those of them that the log has lost. 0 starts a new log
  // and removes the event files of an earlier one. `run` says what the run is: OUT/run.json. Throws
  // Error when files cannot be read or written.
  std::vector<int64_t> begin(int64_t collection, const Json& run);
  // Throws Error where OUT/train.jsonl is no such log, but somebody's text, which begin() would
  // lose, or one of `data`, the files that are trained on.
  static void refuse_other_log(const std::filesystem::path& dir,
                               const std::vector<std::filesystem::path>& data = {});
  // Throws Error naming the file when it cannot be written.
  void append(const CollectionMetrics& metrics);
  // All lines are on the disk: before a checkpoint that knows of them. Throws as append.
  void flush() { lines_.flush(); }

 private:
  static std::filesystem::path path(const std::filesystem::path& dir) {
    return dir / "train.jsonl";
  }
  std::filesystem::path dir_;
  JsonLog lines_;
  std::optional<EventFile> events_;  // begun with the first collection
};

}  // namespace sol
