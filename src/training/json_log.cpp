#include "training/json_log.h"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <optional>
#include <set>
#include <string>
#include <utility>

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

std::vector<int64_t> JsonLog::begin(const char* counter, int64_t last) {
  std::vector<std::pair<int64_t, std::string>> lines;
  std::set<std::string> seen;
  if (last > 0 && path_exists(path_)) {
    const std::string text = read_file(path_);
    // A line without its end was never finished.
    for (size_t begin = 0, end; (end = text.find('\n', begin)) != std::string::npos;
         begin = end + 1) {
      std::string line = text.substr(begin, end + 1 - begin);
      const auto count = counter_of(line, counter);
      if (count && *count >= 0 && *count <= last && seen.insert(line).second)
        lines.emplace_back(*count, std::move(line));
    }
  }
  std::ranges::stable_sort(lines, {}, &std::pair<int64_t, std::string>::first);
  std::string kept;
  std::vector<int64_t> counters;
  for (const auto& [count, line] : lines) {
    kept += line;
    if (counters.empty() || counters.back() != count) counters.push_back(count);
  }
  write_file_atomically(path_, kept);
  return counters;
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
