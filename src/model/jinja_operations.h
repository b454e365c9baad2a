// What expressions of chat templates do to values, as Python does. All throw Error saying what is
// wrong, without a place: the interpreter knows the line.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "model/jinja_value.h"

namespace sol::jinja {

// A call's arguments, evaluated.
struct Arguments {
  std::vector<Value> values;
  std::map<std::string, Value> named;

  // Throws Error unless there are so many values and no names but those.
  void check(std::string_view called, size_t least, size_t most,
             std::initializer_list<std::string_view> names = {}) const;
  // The i-th value, or the one named so; undefined where not given.
  Value get(size_t index, const char* name = nullptr) const;
};

// What a call may give back at most, so that a template cannot fill the memory.
inline constexpr size_t largest_text = size_t{64} << 20;

Value binary(std::string_view operation, const Value& a, const Value& b);
Value negative(const Value& number);
Value slice(const Value& whole, const Value& start, const Value& stop, const Value& step);
Value item(const Value& whole, const Value& index);  // x[index]; undefined where there is none
Value field(const Value& whole, const std::string& name);  // x.name

// What a loop over the value visits.
std::vector<Value> elements(const Value& value);

Value filter(const std::string& name, const Value& value, const Arguments& arguments);
bool test(const std::string& name, const Value& value, const Arguments& arguments);
// value.name(arguments)
Value method(const Value& value, const std::string& name, const Arguments& arguments);

}  // namespace sol::jinja
