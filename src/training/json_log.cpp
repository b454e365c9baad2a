#include "training/json_log.h"

#include <cstring>
#include <fstream>
#include <optional>
#include <string>

#include "base/fail.h"
#include "base/file_io.h"

namespace sol {
namespace {

// The counter of one line; nothing where the line is no object with one.
std::optional<int64_t> counter_of(const std::string& line, const char* counter) {
  const Json json = Json::parse(line, nullptr, false);
  if (!json.is_object() || !json.contains(counter) || !json[counter].is_number_integer())
    return std::nullopt;
  return json[counter].get<int64_t>();
}

}  // namespace

int64_t JsonLog::begin(const char* counter, int64_t last) {
  std::string kept;
  int64_t known = 0;
  if (last > 0 && path_exists(path_)) {
    kept = read_file(path_);
    size_t end = 0;
    // A line without its end was never finished.
    for (size_t newline; (newline = kept.find('\n', end)) != std::string::npos; end = newline + 1) {
      const auto count = counter_of(kept.substr(end, newline - end), counter);
      if (!count || *count < known || *count > last) break;
      known = *count;
    }
    kept.resize(end);
  }
  write_file_atomically(path_, kept);
  return known;
}

void JsonLog::append(const Json& line) {
  std::ofstream out(path_, std::ios::app);
  out << to_text(line) << '\n';
  out.close();
  if (!out) fail("{}: cannot be written: {}", path_.string(), std::strerror(errno));
}

void JsonLog::flush() {
  if (path_exists(path_)) flush_file(path_);
}

}  // namespace sol
