// Where tasks find their data: files that the user names.
#pragma once

#include <filesystem>
#include <functional>
#include <initializer_list>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace sol {

struct DataFile {
  std::string name;         // the file's own name
  std::string fingerprint;  // of its bytes, 32 hexadecimal digits
};

class TaskData {
 public:
  // "DIR", or "NAME=FILE" for one kind of data ("arc_easy", "mmlu_<subject>", "mmlu_<subject>_dev",
  // "gsm8k_cot_llama", "gsm8k_cot_llama_fewshot", ...). Throws Error for a path that does not exist
  // and a name given twice.
  void add(std::string_view argument);

  // The file given for `name`, else the first of `files` that a data directory has. Throws Error
  // listing what was looked for.
  std::filesystem::path find(const std::string& name,
                             std::initializer_list<std::string> files) const;

 private:
  std::vector<std::filesystem::path> directories_;
  std::map<std::string, std::filesystem::path, std::less<>> files_;
};

// Calls visit(object, "FILE line N") for every line, in order. Throws Error for a line that is not
// a JSON object and for a file without any.
DataFile read_json_lines(const std::filesystem::path& path,
                         const std::function<void(const Json&, const std::string& where)>& visit);

// A field that is a list of strings, with at least `least` of them.
std::vector<std::string> json_strings(const Json& object, const char* field, size_t least,
                                      const std::string& where);

}  // namespace sol
