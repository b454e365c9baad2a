#include "base/yaml.h"

#include <charconv>
#include <cmath>
#include <utility>

#include "base/fail.h"
#include "base/file_io.h"

namespace sol {
namespace {

int line_of(const YAML::Node& node) {
  return node.Mark().line + 1;
}

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

template <typename T>
bool parse_number(const std::string& text, T& out) {
  const char* const end = text.data() + text.size();
  const char* begin = text.data();
  if (text.size() > 1 && *begin == '+' && begin[1] != '-') ++begin;
  const auto [stop, error] = std::from_chars(begin, end, out);
  return error == std::errc() && stop == end;
}

// A quoted scalar carries the tag "!" and is a string whatever it looks like.
bool plain_scalar(const YAML::Node& node) {
  return node.IsScalar() && node.Tag() != "!";
}

bool convert(const YAML::Node& node, bool& out) {
  if (!plain_scalar(node)) return false;
  out = node.Scalar() == "true";
  return out || node.Scalar() == "false";
}
bool convert(const YAML::Node& node, int& out) {
  return plain_scalar(node) && parse_number(node.Scalar(), out);
}
bool convert(const YAML::Node& node, int64_t& out) {
  return plain_scalar(node) && parse_number(node.Scalar(), out);
}
bool convert(const YAML::Node& node, double& out) {
  return plain_scalar(node) && parse_number(node.Scalar(), out) && std::isfinite(out);
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

}  // namespace

YamlMap::YamlMap(YAML::Node node, std::string where, std::string section)
    : node_(std::move(node)), where_(std::move(where)), section_(std::move(section)) {
  std::set<std::string> seen;
  for (const auto& entry : node_) {
    if (!entry.first.IsScalar())
      fail("{}, line {}: a key must be a plain word", where_, line_of(entry.first));
    if (!seen.insert(entry.first.Scalar()).second)
      fail("{}, line {}: {} is given twice", where_, line_of(entry.first),
           full_name(entry.first.Scalar()));
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
  return YamlMap(documents[0], where, "");
}

std::string YamlMap::full_name(const std::string& key) const {
  return section_.empty() ? key : section_ + "." + key;
}

// Iterates instead of calling operator[], which would create the key in a node that is not const.
YAML::Node YamlMap::find(const std::string& key) const {
  for (const auto& entry : node_)
    if (entry.first.Scalar() == key) return entry.second;
  return YAML::Node(YAML::NodeType::Undefined);
}

// Of the key: an empty value's own mark lies behind it.
int YamlMap::line_of_key(const std::string& key) const {
  for (const auto& entry : node_)
    if (entry.first.Scalar() == key) return line_of(entry.first);
  return line_of(node_);
}

bool YamlMap::has(const std::string& key) const {
  return find(key).IsDefined();
}

template <typename T>
T YamlMap::get(const std::string& key) {
  known_.insert(key);
  const YAML::Node node = find(key);
  if (!node.IsDefined())
    fail("{}, line {}: {} is missing", where_, line_of_key(key), full_name(key));
  T value{};
  if (!convert(node, value))
    fail("{}, line {}: {} must be {}, not {}", where_, line_of_key(key), full_name(key),
         type_name(value), shown(node));
  return value;
}

template <typename T>
T YamlMap::get_or(const std::string& key, T fallback) {
  known_.insert(key);
  return has(key) ? get<T>(key) : std::move(fallback);
}

YamlMap YamlMap::map(const std::string& key) {
  known_.insert(key);
  const YAML::Node node = find(key);
  if (!node.IsDefined())
    fail("{}, line {}: {} is missing", where_, line_of_key(key), full_name(key));
  if (!node.IsMap())
    fail("{}, line {}: {} must be a mapping, not {}", where_, line_of_key(key), full_name(key),
         shown(node));
  return YamlMap(node, where_, full_name(key));
}

std::optional<YamlMap> YamlMap::optional_map(const std::string& key) {
  known_.insert(key);
  if (!has(key)) return std::nullopt;
  return map(key);
}

void YamlMap::reject_unknown() const {
  for (const auto& entry : node_) {
    const std::string& key = entry.first.Scalar();
    if (known_.count(key)) continue;
    std::string names;
    for (const std::string& name : known_) names += (names.empty() ? "" : ", ") + name;
    fail("{}, line {}: unknown key {}; known here: {}", where_, line_of(entry.first),
         full_name(key), names);
  }
}

#define SOL_INSTANTIATE(...)                                          \
  template __VA_ARGS__ YamlMap::get<__VA_ARGS__>(const std::string&); \
  template __VA_ARGS__ YamlMap::get_or<__VA_ARGS__>(const std::string&, __VA_ARGS__)
SOL_INSTANTIATE(bool);
SOL_INSTANTIATE(int);
SOL_INSTANTIATE(int64_t);
SOL_INSTANTIATE(double);
SOL_INSTANTIATE(std::string);
SOL_INSTANTIATE(std::vector<double>);
SOL_INSTANTIATE(std::vector<std::string>);
#undef SOL_INSTANTIATE

}  // namespace sol
