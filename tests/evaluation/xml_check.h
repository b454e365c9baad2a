// Enough of an XML parser to tell whether SVG and HTML of ours are well formed.
#pragma once

#include <gtest/gtest.h>

#include <cctype>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace sol::test {

// "" when every element is closed in order, attributes are quoted and text is escaped; else what is
// wrong and where. `void_elements` need no end (HTML's meta).
inline std::string check_xml(std::string_view text,
                             const std::set<std::string>& void_elements = {}) {
  std::vector<std::string> open;
  std::set<std::string> entities{"amp", "lt", "gt", "quot", "#39"};
  size_t i = 0;
  const auto at = [&](const std::string& what) {
    return what + " at \"" + std::string(text.substr(i, 60)) + "\"";
  };
  const auto check_entity = [&](size_t from) {
    const size_t end = text.find(';', from);
    return end != std::string_view::npos &&
           entities.count(std::string(text.substr(from + 1, end - from - 1))) > 0;
  };
  while (i < text.size()) {
    if (text[i] == '&') {
      if (!check_entity(i)) return at("stray ampersand");
    }
    if (text[i] == '>') return at("stray >");
    if (text[i] != '<') {
      ++i;
      continue;
    }
    if (text.substr(i, 2) == "<!") {
      i = text.find('>', i) + 1;
      continue;
    }
    const bool closing = text[i + 1] == '/';
    size_t j = i + (closing ? 2 : 1);
    const size_t name_start = j;
    while (j < text.size() && (std::isalnum(static_cast<unsigned char>(text[j])) || text[j] == '-'))
      ++j;
    const std::string name(text.substr(name_start, j - name_start));
    if (name.empty()) return at("tag without a name");
    std::set<std::string> attributes;
    while (j < text.size() && text[j] != '>' && text[j] != '/') {
      if (std::isspace(static_cast<unsigned char>(text[j]))) {
        ++j;
        continue;
      }
      const size_t equals = text.find('=', j);
      if (equals == std::string_view::npos || text[equals + 1] != '"')
        return at("attribute without a quoted value");
      if (!attributes.insert(std::string(text.substr(j, equals - j))).second)
        return at("attribute given twice");
      const size_t end = text.find('"', equals + 2);
      if (end == std::string_view::npos) return at("attribute without an end");
      const std::string_view value = text.substr(equals + 2, end - equals - 2);
      if (value.find('<') != std::string_view::npos) return at("< in an attribute");
      for (size_t k = 0; k < value.size(); ++k)
        if (value[k] == '&' && !check_entity(equals + 2 + k)) return at("stray ampersand");
      j = end + 1;
    }
    const bool self_closed = j < text.size() && text[j] == '/';
    if (self_closed) ++j;
    if (j >= text.size() || text[j] != '>') return at("tag without an end");
    if (closing) {
      if (open.empty() || open.back() != name) return at("</" + name + "> closes nothing");
      open.pop_back();
    } else if (!self_closed && void_elements.count(name) == 0) {
      open.push_back(name);
    }
    i = j + 1;
    if (!closing && name == "style") {  // CSS is not XML
      i = text.find("</style>", i);
      if (i == std::string_view::npos) return "style without an end";
    }
  }
  return open.empty() ? "" : "<" + open.back() + "> is never closed";
}

inline size_t count_of(std::string_view text, std::string_view what) {
  size_t count = 0;
  for (size_t at = text.find(what); at != std::string_view::npos;
       at = text.find(what, at + what.size()))
    ++count;
  return count;
}

}  // namespace sol::test
