#include "base/yaml.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <system_error>
#include <type_traits>
#include <utility>

#include "base/fail.h"
#include "base/file_io.h"
#include "base/number_text.h"
#include "base/shown_text.h"

namespace sol {
namespace {

std::string shown(const YAML::Node& node) {
  switch (node.Type()) {
    case YAML::NodeType::Scalar:
      return "\"" + node.Scalar() + "\"";
    case YAML::NodeType::Sequence:
      return "a list";
    case YAML::NodeType::Map:
      return "a mapping";
    default:
      return "nothing";
  }
}

// No error, std::errc::result_out_of_range for a number that is none of T's, or another one.
template <typename T>
std::errc scan_number(const std::string& text, T& out) {
  const char* const end = text.data() + text.size();
  const char* begin = text.data();
  if (text.size() > 1 && *begin == '+' && begin[1] != '-') ++begin;
  const auto [stop, error] = std::from_chars(begin, end, out);
  return stop == end ? error : std::errc::invalid_argument;
}

// The key's own node and its value's, of a map. Iterates instead of calling operator[], which would
// create the key in a node that is not const.
struct Entry {
  YAML::Node key{YAML::NodeType::Undefined}, value{YAML::NodeType::Undefined};
};
Entry find(const YAML::Node& map, const std::string& key) {
  for (const auto& entry : map)
    if (entry.first.Scalar() == key) return {entry.first, entry.second};
  return {};
}

// A copy of the map with another value under a key, which is appended where it is new. Only the map
// itself is new: its keys and other values are the same nodes, with their lines. Assigning to a
// node instead would change it everywhere that an alias leads to it.
YAML::Node with_value(const YAML::Node& map, const std::string& key, const YAML::Node& value) {
  YAML::Node copy(YAML::NodeType::Map);
  bool found = false;
  for (const auto& entry : map) {
    const bool here = entry.first.Scalar() == key;
    copy.force_insert(entry.first, here ? value : entry.second);
    found = found || here;
  }
  if (!found) copy.force_insert(key, value);
  return copy;
}

// More than any file of ours has.
constexpr size_t most_sections = 16;

// A quoted scalar carries the tag "!" and is a string whatever it looks like.
bool plain_scalar(const YAML::Node& node) {
  return node.IsScalar() && node.Tag() != "!";
}

bool convert(const YAML::Node& node, bool& out) {
  if (!plain_scalar(node)) return false;
  out = node.Scalar() == "true";
  return out || node.Scalar() == "false";
}
template <typename T>
bool convert_number(const YAML::Node& node, T& out) {
  return plain_scalar(node) && scan_number(node.Scalar(), out) == std::errc();
}
bool convert(const YAML::Node& node, int& out) {
  return convert_number(node, out);
}
bool convert(const YAML::Node& node, int64_t& out) {
  return convert_number(node, out);
}
bool convert(const YAML::Node& node, double& out) {
  return convert_number(node, out) && std::isfinite(out);
}
bool convert(const YAML::Node& node, std::string& out) {
  if (!node.IsScalar()) return false;
  out = node.Scalar();
  return true;
}
template <typename T>
bool convert(const YAML::Node& node, std::vector<T>& out) {
  if (!node.IsSequence()) return false;
  out.clear();
  for (const YAML::Node& element : node)
    if (!convert(element, out.emplace_back())) return false;
  return true;
}

const char* type_name(bool) {
  return "true or false";
}
const char* type_name(int) {
  return "a whole number";
}
const char* type_name(int64_t) {
  return "a whole number";
}
const char* type_name(double) {
  return "a number";
}
const char* type_name(const std::string&) {
  return "a string";
}
const char* type_name(const std::vector<double>&) {
  return "a list of numbers";
}
const char* type_name(const std::vector<std::string>&) {
  return "a list of strings";
}

// What the value of a node must be that is not a T.
template <typename T>
std::string wanted([[maybe_unused]] const YAML::Node& node) {
  if constexpr (std::is_arithmetic_v<T> && !std::is_same_v<T, bool>) {
    T ignored{};
    if (plain_scalar(node) && scan_number(node.Scalar(), ignored) == std::errc::result_out_of_range)
      return fitting_number<T>(node.Scalar().starts_with('-'));
  }
  return type_name(T{});
}

}  // namespace

YamlMap::YamlMap(YAML::Node node, std::string where, std::string section,
                 std::shared_ptr<Names> overridden)
    : node_(std::move(node)),
      where_(std::move(where)),
      section_(std::move(section)),
      overridden_(std::move(overridden)) {
  Names seen;
  for (const auto& entry : node_) {
    if (!entry.first.IsScalar())
      fail("{}: a key must be a plain word", place(entry.first, section_));
    const std::string name = full_name(entry.first.Scalar());
    if (entry.first.Scalar() == "<<")
      fail("{}: merging mappings (<<) is not supported; write the keys out",
           place(entry.first, section_));
    if (!seen.insert(name).second) fail("{}: {} is given twice", place(entry.first, name), name);
  }
}

YamlMap YamlMap::read(const std::filesystem::path& path) {
  return parse(read_file(path), path.string());
}

YamlMap YamlMap::parse(const std::string& text, const std::string& where) {
  std::vector<YAML::Node> documents;
  try {
    documents = YAML::LoadAll(text);
  } catch (const YAML::Exception& error) {
    fail("{}, line {}: not valid YAML: {}", where, error.mark.line + 1, error.msg);
  }
  if (documents.size() > 1) fail("{}: contains more than one YAML document", where);
  if (documents.empty() || !documents[0].IsMap())
    fail("{}: must be a YAML mapping (lines of \"key: value\")", where);
  return YamlMap(documents[0], where, "", std::make_shared<Names>());
}

void YamlMap::override_value(const std::string& key, const std::string& value) {
  const std::string given = fmt::format("override \"{}\"", shortened(key + "=" + value, 160));
  // The maps that the key leads through, from the document inwards.
  std::vector<std::pair<YAML::Node, std::string>> path;
  YAML::Node map = node_;
  for (size_t begin = 0, end = 0; begin <= key.size(); begin = end + 1) {
    end = std::min(key.find('.', begin), key.size());
    const std::string part = key.substr(begin, end - begin);
    if (part.empty()) fail("{}: write section.key=value", given);
    if (path.size() == most_sections) fail("{}: no section lies that deep", given);
    path.emplace_back(map, part);
    if (end == key.size()) break;
    YAML::Node next = find(map, part).value;
    if (!next.IsDefined() || next.IsNull()) {
      next.reset(YAML::Node(YAML::NodeType::Map));
      overridden_->insert(key.substr(0, end));
    }
    if (!next.IsMap()) fail("{}: {} is not a section", given, part);
    map.reset(next);
  }
  YAML::Node replaced;
  try {
    replaced.reset(YAML::Load(value));
  } catch (const YAML::Exception& error) {
    fail("{}: not a YAML value: {}", given, error.msg);
  }
  for (auto step = path.rbegin(); step != path.rend(); ++step)
    replaced.reset(with_value(step->first, step->second, replaced));
  node_.reset(replaced);
  overridden_->insert(key);
}

std::string YamlMap::full_name(const std::string& key) const {
  return section_.empty() ? key : section_ + "." + key;
}

std::string YamlMap::place(const YAML::Node& node, const std::string& full_name) const {
  for (std::string name = full_name; !name.empty();) {
    if (overridden_->contains(name)) return fmt::format("{}, override {}", where_, name);
    const size_t dot = name.rfind('.');
    name.resize(dot == std::string::npos ? 0 : dot);
  }
  // A map has lost its line where a value in it was overridden.
  if (node.Mark().is_null()) return where_;
  return fmt::format("{}, line {}", where_, node.Mark().line + 1);
}

// The key's place, not the value's: an empty value's own mark lies behind it.
std::string YamlMap::place(const std::string& key) const {
  YAML::Node map = node_, shown = node_;
  size_t end = 0;
  for (size_t begin = 0; begin <= key.size(); begin = end + 1) {
    end = std::min(key.find('.', begin), key.size());
    const Entry entry = find(map, key.substr(begin, end - begin));
    if (!entry.key.IsDefined())
      return place(shown, begin == 0 ? section_ : full_name(key.substr(0, begin - 1)));
    shown.reset(entry.key);
    map.reset(entry.value);
  }
  return place(shown, full_name(key));
}

bool YamlMap::has(const std::string& key) {
  known_.insert(key);
  return find(node_, key).key.IsDefined();
}

template <typename T>
T YamlMap::get(const std::string& key) {
  if (!has(key)) fail("{}: {} is missing", place(key), full_name(key));
  const YAML::Node node = find(node_, key).value;
  T value{};
  if (!convert(node, value))
    fail("{}: {} must be {}, not {}", place(key), full_name(key), wanted<T>(node), shown(node));
  return value;
}

template <typename T>
T YamlMap::get_or(const std::string& key, T fallback) {
  return has(key) ? get<T>(key) : std::move(fallback);
}

template <typename T>
std::optional<T> YamlMap::get_optional(const std::string& key) {
  if (!has(key) || find(node_, key).value.IsNull()) return std::nullopt;
  return get<T>(key);
}

YamlMap YamlMap::map(const std::string& key) {
  if (!has(key)) fail("{}: {} is missing", place(key), full_name(key));
  const YAML::Node node = find(node_, key).value;
  if (!node.IsMap())
    fail("{}: {} must be a mapping, not {}", place(key), full_name(key), shown(node));
  return YamlMap(node, where_, full_name(key), overridden_);
}

std::optional<YamlMap> YamlMap::optional_map(const std::string& key) {
  if (!has(key)) return std::nullopt;
  return map(key);
}

std::vector<std::string> YamlMap::keys() {
  std::vector<std::string> names;
  for (const auto& entry : node_) {
    names.push_back(entry.first.Scalar());
    known_.insert(names.back());
  }
  return names;
}

std::string YamlMap::yaml_text(const std::string& key) {
  if (!has(key)) fail("{}: {} is missing", place(key), full_name(key));
  YAML::Emitter out;
  out << YAML::Flow << find(node_, key).value;
  return out.c_str();
}

void YamlMap::reject_unknown() const {
  for (const auto& entry : node_) {
    const std::string& key = entry.first.Scalar();
    if (known_.contains(key)) continue;
    const std::vector<std::string> names(known_.begin(), known_.end());
    fail("{}: unknown key {}{}; known here: {}", place(key), full_name(key), suggestion(key, names),
         fmt::join(names, ", "));
  }
}

#define SOL_INSTANTIATE(...)                                                          \
  template __VA_ARGS__ YamlMap::get<__VA_ARGS__>(const std::string&);                 \
  template __VA_ARGS__ YamlMap::get_or<__VA_ARGS__>(const std::string&, __VA_ARGS__); \
  template std::optional<__VA_ARGS__> YamlMap::get_optional<__VA_ARGS__>(const std::string&)
SOL_INSTANTIATE(bool);
SOL_INSTANTIATE(int);
SOL_INSTANTIATE(int64_t);
SOL_INSTANTIATE(double);
SOL_INSTANTIATE(std::string);
SOL_INSTANTIATE(std::vector<double>);
SOL_INSTANTIATE(std::vector<std::string>);
#undef SOL_INSTANTIATE

}  // namespace sol
