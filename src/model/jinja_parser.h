// Chat templates parsed: the subset of Jinja that Llama 3, Qwen and Mistral use.
#pragma once

#include <string>
#include <string_view>

#include "model/jinja_ast.h"

namespace sol::jinja {

// `where` begins messages. Throws Error naming line and construct for anything that is malformed or
// outside the subset.
Block parse(std::string_view source, const std::string& where);

}  // namespace sol::jinja
