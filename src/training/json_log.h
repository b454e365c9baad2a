// A log of JSON lines that a resumed run continues where its checkpoint was.
#pragma once

#include <cstdint>
#include <filesystem>

#include "base/json.h"

namespace sol {

class JsonLog {
 public:
  explicit JsonLog(std::filesystem::path path) : path_(std::move(path)) {}

  // Keeps the first `lines` lines of an existing log (those the checkpoint knows of) and drops the
  // rest; 0 starts a new log. Throws Error when it cannot be read or has fewer lines.
  void begin(int64_t lines);
  // Throws Error naming the file when it cannot be written.
  void append(const Json& line);

 private:
  std::filesystem::path path_;
};

}  // namespace sol
