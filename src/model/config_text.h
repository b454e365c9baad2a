// The text of a config.json, parsed on its own: what a fuzzer feeds.
#pragma once

#include <string>
#include <string_view>

#include "sol/config.h"

namespace sol {

// As load_config (sol/config.h), from text; `where` names it in errors.
LlamaConfig parse_config(std::string_view text, const std::string& where);

}  // namespace sol
