// A log of JSON lines that a resumed run continues where its checkpoint was.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "base/json.h"

namespace sol {

class JsonLog {
 public:
  explicit JsonLog(std::filesystem::path path) : path_(std::move(path)) {}

  // Keeps the lines of an existing log whose `counter` is from 0 to `last`, what a checkpoint knows
  // of, in its order, and drops the rest; returns the counters kept, each once. A log is nothing to
  // lose a run for: a missing one begins anew, and of a damaged one every line that can be read is
  // kept, copies of the same line once. Throws Error when it cannot be read or written.
  std::vector<int64_t> begin(const char* counter, int64_t last);
  // Throws Error naming the file when it cannot be written.
  void append(const Json& line);
  // All lines are on the disk: before a checkpoint that knows of them. Throws as append.
  void flush();

 private:
  std::filesystem::path path_;
};

}  // namespace sol
