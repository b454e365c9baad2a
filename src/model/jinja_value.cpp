#include "model/jinja_value.h"

#include "base/fail.h"

namespace sol::jinja {
namespace {

// Python's repr of a string: in single quotes unless only those occur in it.
std::string repr(const std::string& text) {
  const bool twice = text.find('\'') != std::string::npos && text.find('"') == std::string::npos;
  const char quote = twice ? '"' : '\'';
  std::string out(1, quote);
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == quote || c == '\\')
      out += {'\\', c};
    else if (c == '\n')
      out += "\\n";
    else if (c == '\r')
      out += "\\r";
    else if (c == '\t')
      out += "\\t";
    else if (byte < 0x20 || byte == 0x7f)
      out += fmt::format("\\x{:02x}", byte);
    else
      out += c;
  }
  return out + quote;
}

std::string number(const Json& json) {
  return json.dump();  // the shortest decimal, as Python writes it
}

std::string python_text(const Json& json, bool outermost) {
  if (json.is_string()) return outermost ? json.get<std::string>() : repr(json.get<std::string>());
  if (json.is_null()) return "None";
  if (json.is_boolean()) return json.get<bool>() ? "True" : "False";
  if (json.is_array()) {
    std::string out = "[";
    for (size_t i = 0; i < json.size(); ++i) out += (i ? ", " : "") + python_text(json[i], false);
    return out + "]";
  }
  if (json.is_object()) {
    std::string out = "{";
    for (const auto& [key, value] : json.items())
      out += (out.size() > 1 ? ", " : "") + repr(key) + ": " + python_text(value, false);
    return out + "}";
  }
  return number(json);
}

void append_dump(const Json& json, std::string& out) {
  if (json.is_array()) {
    out += '[';
    for (size_t i = 0; i < json.size(); ++i) {
      if (i) out += ", ";
      append_dump(json[i], out);
    }
    out += ']';
  } else if (json.is_object()) {
    out += '{';
    bool first = true;
    for (const auto& [key, value] : json.items()) {
      if (!first) out += ", ";
      first = false;
      out += to_text(Json(key)) + ": ";
      append_dump(value, out);
    }
    out += '}';
  } else {
    out += to_text(json);
  }
}

bool same(const Json& a, const Json& b) {
  // A truth value is a number in Python.
  if (a.is_boolean() != b.is_boolean()) {
    const Json& other = a.is_boolean() ? b : a;
    const bool truth = (a.is_boolean() ? a : b).get<bool>();
    return other.is_number() && other.get<double>() == (truth ? 1.0 : 0.0);
  }
  if (a.is_number() && b.is_number()) {
    if (a.is_number_integer() && b.is_number_integer()) return a.get<int64_t>() == b.get<int64_t>();
    return a.get<double>() == b.get<double>();
  }
  if (a.type() != b.type()) return false;
  if (a.is_array()) {
    if (a.size() != b.size()) return false;
    for (size_t i = 0; i < a.size(); ++i)
      if (!same(a[i], b[i])) return false;
    return true;
  }
  if (a.is_object()) {  // whatever the order of its fields
    if (a.size() != b.size()) return false;
    for (const auto& [key, value] : a.items()) {
      const auto other = b.find(key);
      if (other == b.end() || !same(value, *other)) return false;
    }
    return true;
  }
  return a == b;
}

}  // namespace

Value Value::make_space() {
  Value value;
  value.kind_ = Kind::space;
  value.fields_ = std::make_shared<std::map<std::string, Value>>();
  return value;
}

Value Value::make_function(std::string name) {
  Value value{Json(std::move(name))};
  value.kind_ = Kind::function;
  return value;
}

Value Value::make_loop(size_t index, size_t length) {
  Value value{Json::array({index, length})};
  value.kind_ = Kind::loop;
  return value;
}

bool Value::truthy() const {
  if (kind_ == Kind::undefined) return false;
  if (kind_ != Kind::data) return true;
  switch (json_->type()) {
    case Json::value_t::null:
      return false;
    case Json::value_t::boolean:
      return json_->get<bool>();
    case Json::value_t::string:
      return !text().empty();
    case Json::value_t::array:
    case Json::value_t::object:
      return !json_->empty();
    default:
      return json_->get<double>() != 0.0;
  }
}

std::string Value::to_text() const {
  if (is_undefined()) return {};
  if (!is_data()) fail("{} has no text", describe());
  return python_text(*json_, true);
}

std::string Value::describe() const {
  switch (kind_) {
    case Kind::undefined:
      return "undefined";
    case Kind::space:
      return "a namespace";
    case Kind::function:
      return "a function";
    case Kind::loop:
      return "loop";
    case Kind::data:
      break;
  }
  if (is_none()) return "none";
  if (is_string()) return "a string";
  if (is_list()) return "a list";
  if (is_mapping()) return "a mapping";
  return is_boolean() ? "a truth value" : "a number";
}

bool equal(const Value& a, const Value& b) {
  if (a.is_undefined() || b.is_undefined()) return a.is_undefined() && b.is_undefined();
  return a.is_data() && b.is_data() && same(a.json(), b.json());
}

std::string dumps(const Json& json, int indent) {
  if (indent >= 0) return to_text(json, indent);
  std::string out;
  append_dump(json, out);
  return out;
}

}  // namespace sol::jinja
