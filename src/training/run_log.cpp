#include "training/run_log.h"

#include <cstring>
#include <fstream>
#include <string>

#include "base/fail.h"
#include "base/file_io.h"

namespace sol {

void RunLog::begin(int64_t lines) {
  std::string kept;
  if (lines > 0 && std::filesystem::exists(path_)) {
    std::ifstream in(path_);
    std::string line;
    for (int64_t i = 0; i < lines && std::getline(in, line); ++i) kept += line + "\n";
  }
  write_file_atomically(path_, kept);
}

void RunLog::append(const Json& line) {
  std::ofstream out(path_, std::ios::app);
  out << line.dump() << '\n';
  out.close();
  if (!out) fail("{}: cannot be written: {}", path_.string(), std::strerror(errno));
}

}  // namespace sol
