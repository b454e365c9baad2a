#include "base/small_numbers.h"

#include <cstddef>

namespace sol {
namespace {

// Behind the string whose first quote is at `at`.
size_t end_of_string(std::string_view text, size_t at) {
  for (++at; at < text.size(); ++at) {
    if (text[at] == '"') return at + 1;
    if (text[at] == '\\') ++at;
  }
  return text.size();
}

}  // namespace

std::string with_small_numbers(std::string_view json) {
  std::string out;
  size_t digits = 0;  // that follow each other, up to here
  for (size_t at = 0; at < json.size();) {
    const size_t end = json[at] == '"' ? end_of_string(json, at) : at + 1;
    digits = json[at] >= '0' && json[at] <= '9' ? digits + 1 : 0;
    // Two, as it is the second by which a zero in front is malformed.
    if (digits <= 2) out += json.substr(at, end - at);
    at = end;
  }
  return out;
}

}  // namespace sol
