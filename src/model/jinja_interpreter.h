// A parsed chat template executed.
#pragma once

#include <map>
#include <string>

#include "model/jinja_ast.h"
#include "model/jinja_value.h"

namespace sol::jinja {

struct Globals {
  std::map<std::string, Value> variables;
  // What strftime_now() shows, "YYYY-MM-DD"; empty: templates do not see that function.
  std::string date;
};

// What the template writes. Throws Error beginning with `where` and the line for what a template
// does wrong, what is outside the subset, and one that does not come to an end; and with the text
// of raise_exception.
std::string render(const Block& block, const std::string& where, const Globals& globals);

}  // namespace sol::jinja
