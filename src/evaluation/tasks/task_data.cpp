#include "evaluation/tasks/task_data.h"

#include <algorithm>

#include "base/fail.h"
#include "base/file_io.h"
#include "base/hash.h"
#include "model/python_text.h"

namespace sol {
namespace fs = std::filesystem;

void TaskData::add(std::string_view argument) {
  std::error_code ignored;
  // A directory may have a '=' in its name.
  const size_t equals = argument.find('=');
  if (equals == std::string_view::npos || fs::is_directory(argument, ignored)) {
    if (!fs::is_directory(argument, ignored))
      fail(
          "--data {}: is not a directory; one file is given as NAME=FILE, for example "
          "arc_easy={}",
          argument, argument);
    directories_.emplace_back(argument);
    return;
  }
  const std::string name(argument.substr(0, equals));
  const fs::path path(argument.substr(equals + 1));
  if (!path_exists(path)) fail("--data {}: there is no file {}", argument, path.string());
  if (!files_.emplace(name, path).second) fail("--data: a file for {} is given twice", name);
}

fs::path TaskData::find(const std::string& name, std::initializer_list<std::string> files) const {
  if (const auto given = files_.find(name); given != files_.end()) return given->second;
  std::string tried;
  for (const fs::path& directory : directories_)
    for (const std::string& file : files) {
      fs::path path = directory / file;
      if (path_exists(path)) return path;
      tried += "\n  " + path.string();
    }
  if (tried.empty())
    fail(
        "there is no data for {}: name its file with --data {}=FILE, or a directory that has {} "
        "with --data DIR",
        name, name, *files.begin());
  fail("there is no data for {}; name its file with --data {}=FILE. Looked for:{}", name, name,
       tried);
}

DataFile read_json_lines(const fs::path& path,
                         const std::function<void(const Json&, const std::string&)>& visit) {
  const std::string text = read_file(path);
  int64_t line_number = 0, objects = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = std::string_view(text).substr(at, end - at);
    at = end + 1;
    ++line_number;
    if (strip(line).empty()) continue;
    const std::string where = fmt::format("{} line {}", path.string(), line_number);
    const Json object = parse_json(line, where);
    if (!object.is_object()) fail("{}: expected a JSON object", where);
    visit(object, where);
    ++objects;
  }
  if (objects == 0) fail("{}: the file has no document", path.string());
  return {path.filename().string(), hash_128(text)};
}

std::vector<std::string> json_strings(const Json& object, const char* field, size_t least,
                                      const std::string& where) {
  if (!object.contains(field)) fail("{}: field \"{}\" is missing", where, field);
  const Json& list = object.at(field);
  if (!list.is_array() || !std::ranges::all_of(list, [](const Json& x) { return x.is_string(); }))
    fail("{}: field \"{}\" must be a list of strings", where, field);
  if (list.size() < least)
    fail("{}: field \"{}\" must have at least {} entries, not {}", where, field, least,
         list.size());
  return list.get<std::vector<std::string>>();
}

}  // namespace sol
