// JSON for readers that need none of its numbers.
#pragma once

#include <string>
#include <string_view>

namespace sol {

// The document with its numbers cut to two digits wherever more follow each other, so that all of
// them fit into a double. What is malformed stays so, and strings stay as they are.
std::string with_small_numbers(std::string_view json);

}  // namespace sol
