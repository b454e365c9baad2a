// Filters, tests and methods.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <system_error>

#include "base/fail.h"
#include "model/jinja_operations.h"
#include "model/python_text.h"
#include "model/utf8.h"

namespace sol::jinja {
namespace {

std::string text_of(const Value& value, std::string_view what) {
  if (value.is_undefined()) return {};
  if (!value.is_string()) fail("{} needs a string, not {}", what, value.describe());
  return value.text();
}

Value text(std::string content) {
  if (content.size() > largest_text) fail("a text is too long");
  return Value(Json(std::move(content)));
}

int64_t length_of(const Value& value) {
  if (value.is_string()) return static_cast<int64_t>(code_points(value.text()));
  if (value.is_list() || value.is_mapping()) return static_cast<int64_t>(value.json().size());
  if (value.is_undefined()) return 0;
  fail("{} has no length", value.describe());
}

Json as_json(const Value& value, std::string_view what) {
  if (!value.is_data()) fail("{} does not take {}", what, value.describe());
  return value.json();
}

Value items_of(const Value& value) {
  if (value.is_undefined()) return Value(Json::array());
  if (!value.is_mapping()) fail("items needs a mapping, not {}", value.describe());
  Json pairs = Json::array();
  for (const auto& [key, one] : value.json().items()) pairs.push_back(Json::array({key, one}));
  return Value(std::move(pairs));
}

// A dotted name's field, for map, selectattr and rejectattr.
Value attribute_of(Value value, std::string_view name) {
  while (true) {
    const size_t point = name.find('.');
    const Value key{Json(std::string(name.substr(0, point)))};
    if (value.is_undefined()) return {};
    value = item(value, key);
    if (point == std::string_view::npos) return value;
    name.remove_prefix(point + 1);
  }
}

// select, reject: a test on the elements; selectattr, rejectattr: on a field of each.
Value selected(const std::string& name, const Value& value, const Arguments& arguments) {
  const bool by_field = name.ends_with("attr"), keep = name.starts_with("select");
  arguments.check(name, by_field ? 1 : 0, by_field ? 3 : 2);
  const size_t test_at = by_field ? 1 : 0;
  const std::string attribute = by_field ? text_of(arguments.get(0), name) : "";
  const Value test_name = arguments.get(test_at);
  Arguments rest;
  if (arguments.values.size() > test_at + 1) rest.values.push_back(arguments.values[test_at + 1]);
  Json chosen = Json::array();
  for (const Value& one : elements(value)) {
    const Value seen = by_field ? attribute_of(one, attribute) : one;
    const bool passes =
        test_name.is_undefined() ? seen.truthy() : test(text_of(test_name, name), seen, rest);
    if (passes == keep) chosen.push_back(as_json(one, name));
  }
  return Value(std::move(chosen));
}

Value mapped(const Value& value, const Arguments& arguments) {
  Json results = Json::array();
  if (arguments.named.contains("attribute")) {
    arguments.check("map", 0, 0, {"attribute", "default"});
    const std::string attribute = text_of(arguments.get(0, "attribute"), "map");
    for (const Value& one : elements(value)) {
      Value found = attribute_of(one, attribute);
      if (found.is_undefined()) found = arguments.get(1, "default");
      results.push_back(as_json(found, "map"));
    }
    return Value(std::move(results));
  }
  arguments.check("map", 1, 8);
  Arguments rest;
  rest.values.assign(arguments.values.begin() + 1, arguments.values.end());
  for (const Value& one : elements(value))
    results.push_back(as_json(filter(text_of(arguments.get(0), "map"), one, rest), "map"));
  return Value(std::move(results));
}

Value joined(const Value& value, std::string_view between, std::string_view attribute) {
  std::string out;
  bool first = true;
  for (const Value& one : elements(value)) {
    if (!first) out += between;
    first = false;
    out += (attribute.empty() ? one : attribute_of(one, attribute)).to_text();
    if (out.size() > largest_text) fail("a text is too long");
  }
  return text(std::move(out));
}

// The filter, unlike str.title(): only white space, dashes and opening brackets end a word.
std::string titled(std::string_view rest) {
  std::string out;
  bool begins = true;
  while (!rest.empty()) {
    const std::string_view one = rest.substr(0, utf8_length(rest[0]));
    out += begins ? upper_case(one) : lower_case(one);
    begins = strip(one).empty() || std::string_view("-({[<").find(one) != std::string_view::npos;
    rest.remove_prefix(one.size());
  }
  return out;
}

// A number's text without what Python's int() and float() pass over: white space around it, a plus,
// a "_" between digits.
std::string bare_number(std::string_view rest) {
  rest = strip(rest);
  if (rest.starts_with('+') && !rest.starts_with("+-")) rest.remove_prefix(1);
  const auto digit = [&](size_t i) { return i < rest.size() && rest[i] >= '0' && rest[i] <= '9'; };
  std::string out;
  for (size_t i = 0; i < rest.size(); ++i)
    if (rest[i] != '_' || i == 0 || !digit(i - 1) || !digit(i + 1)) out += rest[i];
  return out;
}

// Python's integers have no limit.
std::optional<int64_t> truncated(double number) {
  if (!std::isfinite(number)) return std::nullopt;
  if (std::abs(number) >= 0x1p63) fail("a number is too large");
  return static_cast<int64_t>(number);
}

// int(text), else int(float(text)): "4.2" is 4.
std::optional<int64_t> read_integer(std::string_view written) {
  const std::string bare = bare_number(written);
  const char* const end = bare.data() + bare.size();
  int64_t whole = 0;
  const auto as_whole = std::from_chars(bare.data(), end, whole);
  if (as_whole.ptr == end && as_whole.ec == std::errc()) return whole;
  if (as_whole.ptr == end && as_whole.ec == std::errc::result_out_of_range)
    fail("a number is too large");
  double real = 0;
  const auto as_real = std::from_chars(bare.data(), end, real);
  if (as_real.ptr != end || as_real.ec != std::errc()) return std::nullopt;
  return truncated(real);
}

Value integer_of(const Value& value, const Value& otherwise) {
  if (value.is_undefined()) fail("int needs a value, not undefined");
  if (value.is_integer()) return value;
  std::optional<int64_t> found;
  if (value.is_boolean()) found = value.json().get<bool>() ? 1 : 0;
  if (value.is_number()) found = truncated(value.json().get<double>());
  if (value.is_string()) found = read_integer(value.text());
  if (found) return Value(Json(*found));
  return otherwise.is_undefined() ? Value(Json(0)) : otherwise;
}

Value replaced(const std::string& whole, const Arguments& arguments, const char* what) {
  arguments.check(what, 2, 2);
  const std::string from = text_of(arguments.get(0), what);
  if (from.empty()) fail("{} of an empty string is not supported", what);
  const std::string to = text_of(arguments.get(1), what);
  if (whole.size() / from.size() * to.size() > largest_text) fail("a text is too long");
  return text(replace_text(whole, from, to));
}

Value split(const std::string& whole, const Arguments& arguments) {
  arguments.check("split", 0, 2, {"sep", "maxsplit"});
  const Value separator = arguments.get(0, "sep"), most = arguments.get(1, "maxsplit");
  int64_t left = most.is_undefined() ? -1 : most.is_integer() ? most.integer() : -1;
  Json parts = Json::array();
  if (separator.is_undefined() || separator.is_none()) {
    std::string_view rest = left_strip(whole);
    while (!rest.empty()) {
      size_t end = left == 0 ? rest.size() : 0;
      while (end < rest.size()) {
        const std::string_view one = rest.substr(end, utf8_length(rest[end]));
        if (strip(one).empty()) break;
        end += one.size();
      }
      parts.push_back(std::string(rest.substr(0, end)));
      rest = left_strip(rest.substr(end));
      if (left > 0) --left;
    }
    return Value(std::move(parts));
  }
  const std::string between = text_of(separator, "split");
  if (between.empty()) fail("split by an empty string");
  size_t done = 0;
  for (size_t at; left != 0 && (at = whole.find(between, done)) != std::string::npos;) {
    parts.push_back(whole.substr(done, at - done));
    done = at + between.size();
    if (left > 0) --left;
  }
  parts.push_back(whole.substr(done));
  return Value(std::move(parts));
}

Value stripped(const std::string& whole, const std::string& name, const Arguments& arguments) {
  arguments.check(name, 0, 1, {"chars"});
  const Value given = arguments.get(0, "chars");
  std::string_view rest = whole;
  const bool space = given.is_undefined() || given.is_none();
  const std::string characters = space ? "" : text_of(given, name);
  if (name != "rstrip") rest = space ? left_strip(rest) : left_strip(rest, characters);
  if (name != "lstrip") rest = space ? right_strip(rest) : right_strip(rest, characters);
  return text(std::string(rest));
}

bool affix(const std::string& whole, const std::string& name, const Arguments& arguments) {
  arguments.check(name, 1, 1);
  const Value given = arguments.get(0);
  const auto matches = [&](const std::string& one) {
    return name == "startswith" ? whole.starts_with(one) : whole.ends_with(one);
  };
  if (given.is_list())
    return std::ranges::any_of(
        given.json(), [&](const Json& one) { return matches(text_of(given.part(one), name)); });
  return matches(text_of(given, name));
}

Value string_method(const std::string& whole, const std::string& name, const Arguments& arguments) {
  if (name == "strip" || name == "lstrip" || name == "rstrip")
    return stripped(whole, name, arguments);
  if (name == "split") return split(whole, arguments);
  if (name == "startswith" || name == "endswith") return Value(Json(affix(whole, name, arguments)));
  if (name == "replace") return replaced(whole, arguments, "replace");
  if (name == "join") {
    arguments.check(name, 1, 1);
    return joined(arguments.get(0), whole, "");
  }
  if (name == "upper" || name == "lower" || name == "title" || name == "capitalize") {
    arguments.check(name, 0, 0);
    if (name == "title") return text(title_case(whole));
    return filter(name, text(whole), {});
  }
  fail("the method {} of strings is not supported", name);
}

}  // namespace

void Arguments::check(std::string_view called, size_t least, size_t most,
                      std::initializer_list<std::string_view> names) const {
  for (const auto& [name, ignored] : named)
    if (std::ranges::find(names, name) == names.end())
      fail("{} does not take an argument \"{}\"", called, name);
  if (values.size() < least || values.size() > most)
    fail("{} takes {} to {} arguments, not {}", called, least, most, values.size());
}

Value Arguments::get(size_t index, const char* name) const {
  if (name)
    if (const auto found = named.find(name); found != named.end()) return found->second;
  return index < values.size() ? values[index] : Value();
}

Value filter(const std::string& name, const Value& value, const Arguments& arguments) {
  const auto no_arguments = [&] { arguments.check(name, 0, 0); };
  if (name == "trim") {
    arguments.check(name, 0, 1, {"chars"});
    return stripped(value.to_text(), "strip", arguments);
  }
  if (name == "tojson") {
    arguments.check(name, 0, 1, {"indent", "ensure_ascii"});
    const Value indent = arguments.get(0, "indent");
    if (arguments.get(9, "ensure_ascii").truthy())
      fail("tojson with ensure_ascii is not supported");
    if (indent.is_integer() && (indent.integer() < 0 || indent.integer() > 64))
      fail("tojson cannot indent by {}", indent.integer());
    return text(
        dumps(as_json(value, name), indent.is_integer() ? static_cast<int>(indent.integer()) : -1));
  }
  if (name == "length" || name == "count") return no_arguments(), Value(Json(length_of(value)));
  if (name == "upper") return no_arguments(), text(upper_case(value.to_text()));
  if (name == "lower") return no_arguments(), text(lower_case(value.to_text()));
  if (name == "capitalize") return no_arguments(), text(capitalised(value.to_text()));
  if (name == "title") return no_arguments(), text(titled(value.to_text()));
  if (name == "string") return no_arguments(), text(value.to_text());
  if (name == "safe") return no_arguments(), value;
  if (name == "items") return no_arguments(), items_of(value);
  if (name == "list" || name == "reverse") {
    no_arguments();
    if (name == "reverse" && value.is_string()) return slice(value, {}, {}, Value(Json(-1)));
    Json list = Json::array();
    for (const Value& one : elements(value)) list.push_back(as_json(one, name));
    if (name == "reverse") std::ranges::reverse(list);
    return Value(std::move(list));
  }
  if (name == "first" || name == "last") {
    no_arguments();
    const std::vector<Value> all = elements(value);
    return all.empty() ? Value() : name == "first" ? all.front() : all.back();
  }
  if (name == "default" || name == "d") {
    arguments.check(name, 0, 2, {"default_value", "boolean"});
    const bool replace =
        value.is_undefined() || (arguments.get(1, "boolean").truthy() && !value.truthy());
    if (!replace) return value;
    const Value other = arguments.get(0, "default_value");
    return other.is_undefined() ? text("") : other;
  }
  if (name == "join") {
    arguments.check(name, 0, 2, {"d", "attribute"});
    return joined(value, text_of(arguments.get(0, "d"), name),
                  text_of(arguments.get(1, "attribute"), name));
  }
  if (name == "int") {
    arguments.check(name, 0, 1, {"default"});
    return integer_of(value, arguments.get(0, "default"));
  }
  if (name == "replace") return replaced(value.to_text(), arguments, "replace");
  if (name == "map") return mapped(value, arguments);
  if (name == "select" || name == "reject" || name == "selectattr" || name == "rejectattr")
    return selected(name, value, arguments);
  fail("the filter {} is not supported", name);
}

bool test(const std::string& name, const Value& value, const Arguments& arguments) {
  if (name == "equalto" || name == "eq" || name == "==" || name == "ne" || name == "!=" ||
      name == "in") {
    arguments.check(name, 1, 1);
    const char* operation = name == "in" ? "in" : name == "ne" || name == "!=" ? "!=" : "==";
    return binary(operation, value, arguments.get(0)).truthy();
  }
  arguments.check(name, 0, 0);
  if (name == "defined") return !value.is_undefined();
  if (name == "undefined") return value.is_undefined();
  if (name == "none") return value.is_none();
  if (name == "string") return value.is_string();
  if (name == "mapping") return value.is_mapping() || value.kind() == Value::Kind::space;
  if (name == "sequence") return value.is_string() || value.is_list() || value.is_mapping();
  if (name == "iterable")
    return value.is_string() || value.is_list() || value.is_mapping() || value.is_undefined();
  if (name == "number") return value.is_number() || value.is_boolean();
  if (name == "integer") return value.is_integer();
  if (name == "float") return value.is_number() && !value.is_integer();
  if (name == "boolean") return value.is_boolean();
  if (name == "true") return value.is_boolean() && value.truthy();
  if (name == "false") return value.is_boolean() && !value.truthy();
  if (name == "odd" || name == "even") {
    if (!value.is_integer())
      fail("the test {} needs a whole number, not {}", name, value.describe());
    return (value.integer() % 2 != 0) == (name == "odd");
  }
  fail("the test {} is not supported", name);
}

Value method(const Value& value, const std::string& name, const Arguments& arguments) {
  if (value.is_string()) return string_method(value.text(), name, arguments);
  if (value.is_mapping()) {
    if (name == "get") {
      arguments.check(name, 1, 2);
      const Value found = item(value, arguments.get(0));
      if (!found.is_undefined()) return found;
      return arguments.values.size() > 1 ? arguments.get(1) : Value(Json(nullptr));
    }
    if (name == "items") return arguments.check(name, 0, 0), items_of(value);
    if (name == "keys" || name == "values") {
      arguments.check(name, 0, 0);
      Json list = Json::array();
      for (const auto& [key, one] : value.json().items())
        list.push_back(name == "keys" ? Json(key) : one);
      return Value(std::move(list));
    }
  }
  fail("the method {} of {} is not supported", name, value.describe());
}

}  // namespace sol::jinja
