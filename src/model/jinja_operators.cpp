// Operators, subscripts and slices.
#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "base/fail.h"
#include "model/jinja_operations.h"
#include "model/utf8.h"

namespace sol::jinja {
namespace {

[[noreturn]] void unsupported(std::string_view operation, const Value& a, const Value& b) {
  fail("{} {} {} is not supported", a.describe(), operation, b.describe());
}

// Python's: a division rounds down, a remainder has the divisor's sign.
std::optional<int64_t> integers(std::string_view operation, int64_t a, int64_t b) {
  int64_t result = 0;
  bool overflow = false;
  if (operation == "+") {
    overflow = __builtin_add_overflow(a, b, &result);
  } else if (operation == "-") {
    overflow = __builtin_sub_overflow(a, b, &result);
  } else if (operation == "*") {
    overflow = __builtin_mul_overflow(a, b, &result);
  } else if (operation == "//" || operation == "%") {
    if (b == 0) fail("division by zero");
    if (a == std::numeric_limits<int64_t>::min() && b == -1) fail("a number is too large");
    const int64_t remainder = a % b;
    const bool adjust = remainder != 0 && (remainder < 0) != (b < 0);
    result = operation == "%" ? (adjust ? remainder + b : remainder) : a / b - (adjust ? 1 : 0);
  } else {
    return std::nullopt;
  }
  if (overflow) fail("a number is too large");
  return result;
}

double reals(std::string_view operation, double a, double b) {
  if (operation == "+") return a + b;
  if (operation == "-") return a - b;
  if (operation == "*") return a * b;
  if (b == 0) fail("division by zero");
  if (operation == "/") return a / b;
  const double quotient = std::floor(a / b);
  return operation == "//" ? quotient : a - quotient * b;
}

bool arithmetic_value(const Value& value) {
  return value.is_number() || value.is_boolean();
}
double real(const Value& value) {
  return value.is_boolean() ? (value.json().get<bool>() ? 1.0 : 0.0) : value.json().get<double>();
}
int64_t whole(const Value& value) {
  return value.is_boolean() ? (value.json().get<bool>() ? 1 : 0) : value.integer();
}

bool contains(const Value& inside, const Value& part) {
  if (inside.is_undefined()) return false;
  if (inside.is_string()) {
    if (!part.is_string()) unsupported("in", part, inside);
    return inside.text().find(part.text()) != std::string::npos;
  }
  if (inside.is_list())
    return std::ranges::any_of(inside.json(),
                               [&](const Json& one) { return equal(inside.part(one), part); });
  if (inside.is_mapping()) return part.is_string() && inside.json().contains(part.text());
  unsupported("in", part, inside);
}

template <typename T>
bool ordered(std::string_view operation, const T& a, const T& b) {
  if (operation == "<") return a < b;
  if (operation == "<=") return a <= b;
  return operation == ">" ? a > b : a >= b;
}

Value compare(std::string_view operation, const Value& a, const Value& b) {
  if (arithmetic_value(a) && arithmetic_value(b))
    return Value(Json(ordered(operation, real(a), real(b))));
  if (a.is_string() && b.is_string()) return Value(Json(ordered(operation, a.text(), b.text())));
  unsupported(operation, a, b);
}

Value add(const Value& a, const Value& b) {
  if (a.is_string() && b.is_string()) {
    if (a.text().size() + b.text().size() > largest_text) fail("a text is too long");
    return Value(Json(a.text() + b.text()));
  }
  Json both = a.json();
  if (both.size() + b.json().size() > largest_text / sizeof(Json)) fail("a list is too long");
  both.insert(both.end(), b.json().begin(), b.json().end());
  return Value(std::move(both));
}

Value loop_field(int64_t index, int64_t length, const std::string& name) {
  if (name == "index") return Value(Json(index + 1));
  if (name == "index0") return Value(Json(index));
  if (name == "revindex") return Value(Json(length - index));
  if (name == "revindex0") return Value(Json(length - index - 1));
  if (name == "first") return Value(Json(index == 0));
  if (name == "last") return Value(Json(index + 1 == length));
  if (name == "length") return Value(Json(length));
  fail("loop.{} is not supported", name);
}

std::vector<std::string> characters(const std::string& text) {
  std::vector<std::string> all;
  for (size_t at = 0; at < text.size();) {
    const size_t size = std::min(utf8_length(text[at]), text.size() - at);
    all.push_back(text.substr(at, size));
    at += size;
  }
  return all;
}

// Positions that Python's slice visits in a sequence of n.
std::vector<size_t> sliced(int64_t n, const Value& start, const Value& stop, const Value& step) {
  const auto given = [](const Value& value) {
    if (value.is_undefined() || value.is_none()) return false;
    if (!value.is_integer()) fail("a slice needs whole numbers, not {}", value.describe());
    return true;
  };
  const int64_t by = given(step) ? step.integer() : 1;
  if (by == 0) fail("a slice's step is 0");
  const int64_t low = by > 0 ? 0 : -1, high = by > 0 ? n : n - 1;
  const auto bound = [&](const Value& value, int64_t otherwise) {
    if (!given(value)) return otherwise;
    const int64_t at = value.integer();
    return at < 0 ? (at < -n ? low : std::max(at + n, low)) : std::min(at, high);
  };
  const int64_t first = bound(start, by > 0 ? low : high);
  const int64_t last = bound(stop, by > 0 ? high : low);
  std::vector<size_t> positions;
  if (by > 0)
    for (int64_t i = first; i < last; i += std::min(by, n + 1))
      positions.push_back(static_cast<size_t>(i));
  else
    for (int64_t i = first; i > last; i -= std::min(by < -n ? n + 1 : -by, n + 1))
      positions.push_back(static_cast<size_t>(i));
  return positions;
}

}  // namespace

Value binary(std::string_view operation, const Value& a, const Value& b) {
  if (operation == "==") return Value(Json(equal(a, b)));
  if (operation == "!=") return Value(Json(!equal(a, b)));
  if (operation == "in") return Value(Json(contains(b, a)));
  if (operation == "not in") return Value(Json(!contains(b, a)));
  if (operation == "~") {
    std::string text = a.to_text() + b.to_text();
    if (text.size() > largest_text) fail("a text is too long");
    return Value(Json(std::move(text)));
  }
  if (operation[0] == '<' || operation[0] == '>') return compare(operation, a, b);
  if (operation == "+" && ((a.is_string() && b.is_string()) || (a.is_list() && b.is_list())))
    return add(a, b);
  if (!arithmetic_value(a) || !arithmetic_value(b)) unsupported(operation, a, b);
  const auto integral = [](const Value& value) { return value.is_integer() || value.is_boolean(); };
  if (integral(a) && integral(b))
    if (const auto result = integers(operation, whole(a), whole(b))) return Value(Json(*result));
  return Value(Json(reals(operation, real(a), real(b))));
}

Value negative(const Value& number) {
  if (number.is_integer()) return Value(Json(*integers("-", 0, number.integer())));
  if (!number.is_number()) fail("-{} is not supported", number.describe());
  return Value(Json(-real(number)));
}

Value slice(const Value& whole_value, const Value& start, const Value& stop, const Value& step) {
  if (whole_value.is_list()) {
    Json part = Json::array();
    const Json& list = whole_value.json();
    for (const size_t i : sliced(static_cast<int64_t>(list.size()), start, stop, step))
      part.push_back(list[i]);
    return Value(std::move(part));
  }
  if (!whole_value.is_string()) fail("{} cannot be sliced", whole_value.describe());
  const std::vector<std::string> all = characters(whole_value.text());
  std::string part;
  for (const size_t i : sliced(static_cast<int64_t>(all.size()), start, stop, step)) part += all[i];
  return Value(Json(std::move(part)));
}

Value item(const Value& whole_value, const Value& index) {
  if (index.is_string() && (whole_value.is_mapping() || whole_value.kind() == Value::Kind::space ||
                            whole_value.kind() == Value::Kind::loop)) {
    if (whole_value.is_mapping()) {
      const auto found = whole_value.json().find(index.text());
      return found == whole_value.json().end() ? Value() : whole_value.part(*found);
    }
    return field(whole_value, index.text());
  }
  if (!whole_value.is_data()) fail("{} has no elements", whole_value.describe());
  // Also of what has none at all, such as none and numbers, an element is undefined.
  const bool has_places = whole_value.is_list() || whole_value.is_string();
  if (!has_places || !index.is_integer()) return {};
  const std::vector<Value> all =
      whole_value.is_string() ? elements(whole_value) : std::vector<Value>{};
  const auto size =
      static_cast<int64_t>(whole_value.is_string() ? all.size() : whole_value.json().size());
  const int64_t given = index.integer();
  const int64_t at = given < 0 ? given + size : given;
  if (at < 0 || at >= size) return {};
  return whole_value.is_string() ? all[static_cast<size_t>(at)]
                                 : whole_value.part(whole_value.json()[static_cast<size_t>(at)]);
}

Value field(const Value& whole_value, const std::string& name) {
  switch (whole_value.kind()) {
    case Value::Kind::space: {
      const auto found = whole_value.fields().find(name);
      return found == whole_value.fields().end() ? Value() : found->second;
    }
    case Value::Kind::loop:
      return loop_field(whole_value.json()[0].get<int64_t>(), whole_value.json()[1].get<int64_t>(),
                        name);
    case Value::Kind::data:
      break;
    default:
      fail("{} has no field \"{}\"", whole_value.describe(), name);
  }
  if (!whole_value.is_mapping()) return {};
  // A mapping's methods go before its fields, as in Python.
  for (const char* known : {"items", "keys", "values", "get", "pop", "update", "copy", "clear"})
    if (name == known)
      fail("\"{}\" is a method of mappings; a field of that name is [\"{}\"]", name, name);
  const auto found = whole_value.json().find(name);
  return found == whole_value.json().end() ? Value() : whole_value.part(*found);
}

std::vector<Value> elements(const Value& value) {
  std::vector<Value> all;
  if (value.is_undefined()) return all;
  if (value.is_list()) {
    for (const Json& one : value.json()) all.push_back(value.part(one));
  } else if (value.is_mapping()) {
    for (const auto& [key, ignored] : value.json().items()) all.emplace_back(Json(key));
  } else if (value.is_string()) {
    for (std::string& one : characters(value.text())) all.emplace_back(Json(std::move(one)));
  } else {
    fail("there is no loop over {}", value.describe());
  }
  return all;
}

}  // namespace sol::jinja
