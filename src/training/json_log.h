// A log of JSON lines that a resumed run continues where its checkpoint was.
#pragma once

#include <cstdint>
#include <filesystem>

#include "base/json.h"

namespace sol {

class JsonLog {
 public:
  explicit JsonLog(std::filesystem::path path) : path_(std::move(path)) {}

  // Keeps the lines at the start of an existing log whose `counter` is at most `last`, what a
  // checkpoint knows of, and drops the rest; returns the last counter kept, 0 where there is none.
  // A log is nothing to lose a run for: a missing one begins anew, and one that ends early or is
  // damaged is kept up to there. Throws Error when it cannot be read or written.
  int64_t begin(const char* counter, int64_t last);
  // Throws Error naming the file when it cannot be written.
  void append(const Json& line);
  // All lines are on the disk: before a checkpoint that knows of them. Throws as append.
  void flush();

 private:
  std::filesystem::path path_;
};

}  // namespace sol
