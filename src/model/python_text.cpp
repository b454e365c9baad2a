#include "model/python_text.h"

#include <utf8proc.h>

#include "model/utf8.h"

namespace sol {
namespace {

// One character from the left: its code point, or a number that is no code point for a broken byte.
struct Character {
  char32_t code_point;
  size_t size;
};
constexpr char32_t broken = 0x110000;

Character character_at(std::string_view text, size_t at) {
  const size_t size = utf8_length(text[at]);
  const std::string_view bytes = text.substr(at, size);
  if (bytes.size() != size || !is_valid_utf8(bytes)) return {broken, 1};
  size_t position = 0;
  return {next_code_point(bytes, position), size};
}

// The last character of a text that is not empty.
Character last_character(std::string_view text) {
  for (size_t size = 1; size <= 4 && size <= text.size(); ++size) {
    const Character found = character_at(text, text.size() - size);
    if (found.code_point != broken && found.size == size) return found;
  }
  return {broken, 1};
}

bool contains(std::string_view characters, char32_t code_point) {
  for (size_t at = 0; at < characters.size();) {
    const Character one = character_at(characters, at);
    if (one.code_point == code_point && code_point != broken) return true;
    at += one.size;
  }
  return false;
}

template <typename Drop>
std::string_view drop_left(std::string_view text, const Drop& drop) {
  while (!text.empty()) {
    const Character first = character_at(text, 0);
    if (!drop(first.code_point)) break;
    text.remove_prefix(first.size);
  }
  return text;
}

template <typename Drop>
std::string_view drop_right(std::string_view text, const Drop& drop) {
  while (!text.empty()) {
    const Character last = last_character(text);
    if (!drop(last.code_point)) break;
    text.remove_suffix(last.size);
  }
  return text;
}

// Every character through `map(code_point, index, previous code point)`.
template <typename Map>
std::string mapped(std::string_view text, const Map& map) {
  std::string out;
  char32_t previous = 0;
  size_t index = 0;
  for (size_t at = 0; at < text.size(); ++index) {
    const Character one = character_at(text, at);
    if (one.code_point == broken)
      out += text[at];
    else
      append_utf8(map(one.code_point, index, previous), out);
    previous = one.code_point;
    at += one.size;
  }
  return out;
}

char32_t upper(char32_t c) {
  return static_cast<char32_t>(utf8proc_toupper(static_cast<utf8proc_int32_t>(c)));
}
char32_t lower(char32_t c) {
  return static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c)));
}
char32_t title(char32_t c) {
  return static_cast<char32_t>(utf8proc_totitle(static_cast<utf8proc_int32_t>(c)));
}

}  // namespace

bool is_python_space(char32_t c) {
  return (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x20) || c == 0x85 || c == 0xA0 ||
         c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F ||
         c == 0x205F || c == 0x3000;
}

std::string_view left_strip(std::string_view text) {
  return drop_left(text, is_python_space);
}
std::string_view right_strip(std::string_view text) {
  return drop_right(text, is_python_space);
}
std::string_view strip(std::string_view text) {
  return left_strip(right_strip(text));
}
std::string_view left_strip(std::string_view text, std::string_view characters) {
  return drop_left(text, [&](char32_t c) { return contains(characters, c); });
}
std::string_view right_strip(std::string_view text, std::string_view characters) {
  return drop_right(text, [&](char32_t c) { return contains(characters, c); });
}

std::string replace_text(std::string_view text, std::string_view from, std::string_view to) {
  std::string out;
  size_t done = 0;
  for (size_t at; (at = text.find(from, done)) != std::string_view::npos; done = at + from.size()) {
    out += text.substr(done, at - done);
    out += to;
  }
  return out += text.substr(done);
}

std::string upper_case(std::string_view text) {
  return mapped(text, [](char32_t c, size_t, char32_t) { return upper(c); });
}
std::string lower_case(std::string_view text) {
  return mapped(text, [](char32_t c, size_t, char32_t) { return lower(c); });
}
std::string capitalised(std::string_view text) {
  return mapped(
      text, [](char32_t c, size_t index, char32_t) { return index == 0 ? title(c) : lower(c); });
}
std::string title_case(std::string_view text) {
  // A word begins after anything that has no case.
  return mapped(text, [](char32_t c, size_t, char32_t previous) {
    const bool inside = upper(previous) != previous || lower(previous) != previous;
    return inside ? lower(c) : title(c);
  });
}

size_t code_points(std::string_view text) {
  size_t count = 0;
  for (size_t at = 0; at < text.size(); ++count) at += character_at(text, at).size;
  return count;
}

size_t split_by_space_count(std::string_view text) {
  size_t runs = 0;
  bool in_run = false;
  for (size_t at = 0; at < text.size();) {
    const Character one = character_at(text, at);
    const bool space = is_python_space(one.code_point);
    if (space && !in_run) ++runs;
    in_run = space;
    at += one.size;
  }
  return runs + 1;
}

}  // namespace sol
