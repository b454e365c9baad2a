#include "training/json_log.h"

#include <cstring>
#include <fstream>
#include <string>

#include "base/fail.h"
#include "base/file_io.h"

namespace sol {

void JsonLog::begin(int64_t lines) {
  std::string kept;
  if (lines > 0) {
    kept = read_file(path_);
    size_t end = 0;
    for (int64_t i = 0; i < lines; ++i) {
      end = kept.find('\n', end);
      if (end == std::string::npos)
        fail("{}: has {} lines, but the checkpoint knows of {} collections; restore the log",
             path_.string(), i, lines);
      ++end;
    }
    kept.resize(end);
  }
  write_file_atomically(path_, kept);
}

void JsonLog::append(const Json& line) {
  std::ofstream out(path_, std::ios::app);
  out << to_text(line) << '\n';
  out.close();
  if (!out) fail("{}: cannot be written: {}", path_.string(), std::strerror(errno));
}

}  // namespace sol
