// Text operations as Python's str has them: chat templates and the prompts of evaluation tasks are
// defined by what Python does. All text is UTF-8; broken bytes are kept as they are.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace sol {

// What str.isspace() and the \s of regular expressions on str count as white space.
bool is_python_space(char32_t code_point);

// str.strip(), lstrip(), rstrip() of white space.
std::string_view strip(std::string_view text);
std::string_view left_strip(std::string_view text);
std::string_view right_strip(std::string_view text);

// The same with a set of characters (each code point of `characters`).
std::string_view left_strip(std::string_view text, std::string_view characters);
std::string_view right_strip(std::string_view text, std::string_view characters);

// str.replace(): every occurrence from left to right, without overlap. `from` must not be empty.
std::string replace_text(std::string_view text, std::string_view from, std::string_view to);

// str.upper(), lower(), capitalize(), title() by simple case mappings: one code point becomes one.
std::string upper_case(std::string_view text);
std::string lower_case(std::string_view text);
std::string capitalised(std::string_view text);
std::string title_case(std::string_view text);

// len(): code points; a byte that is not UTF-8 counts as one.
size_t code_points(std::string_view text);

// len(re.split(r"\s+", text)): runs of white space plus one.
size_t split_by_space_count(std::string_view text);

}  // namespace sol
