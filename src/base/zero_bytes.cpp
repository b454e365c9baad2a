#include "base/zero_bytes.h"

#include <algorithm>

#include "base/fail.h"

namespace sol {

void refuse_zero_bytes(std::string_view json, const std::string& where) {
  const size_t at = json.find('\0');
  if (at == json.npos) return;
  const std::string_view before = json.substr(0, at);
  const size_t line = 1 + static_cast<size_t>(std::ranges::count(before, '\n'));
  const size_t column = at - (before.rfind('\n') + 1) + 1;  // npos + 1 is 0
  const bool lines = json.find('\n') != json.npos;
  fail("{}: not valid JSON: a zero byte at {}column {}", where,
       lines ? fmt::format("line {}, ", line) : "", column);
}

}  // namespace sol
