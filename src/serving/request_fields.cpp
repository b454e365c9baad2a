#include "serving/request_fields.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

namespace sol {

int64_t read_integer(const Json& value, const std::string& name, int64_t low, int64_t high) {
  // Integers beyond 64 bits arrive as floats.
  constexpr double beyond = 0x1p63;
  const bool too_large = value.is_number() && std::fabs(value.get<double>()) >= beyond;
  if (!value.is_number_integer() && !too_large)
    throw bad_field(name, "must be an integer", "invalid_type");
  const int64_t number = too_large ? 0 : value.get<int64_t>();
  if (too_large || number < low || number > high)
    throw bad_field(name, fmt::format("must lie in {}..{}, not {}", low, high, value.dump()),
                    "out_of_range");
  return number;
}

int32_t read_token_id(const Json& item, const std::string& name, size_t index, int vocab) {
  // Lists are long, and names are needed for errors alone.
  if (item.is_number_integer())
    if (const auto id = item.get<int64_t>(); id >= 0 && id < vocab) return static_cast<int32_t>(id);
  return static_cast<int32_t>(
      read_integer(item, fmt::format("{}[{}]", name, index), 0, int64_t{vocab} - 1));
}

RequestFields::RequestFields(const Json& object, std::string prefix)
    : object_(object), prefix_(std::move(prefix)) {
  if (object.is_object()) return;
  const std::string name = prefix_.empty() ? "the request" : prefix_.substr(0, prefix_.size() - 1);
  throw bad_field(name, "must be a JSON object", "invalid_type");
}

const Json* RequestFields::find(const std::string& name) {
  known_.insert(name);
  const auto found = object_.find(name);
  return found == object_.end() || found->is_null() ? nullptr : &*found;
}

std::optional<bool> RequestFields::boolean(const std::string& name) {
  const Json* value = find(name);
  if (!value) return std::nullopt;
  if (!value->is_boolean())
    throw bad_field(full_name(name), "must be true or false", "invalid_type");
  return value->get<bool>();
}

std::optional<int64_t> RequestFields::integer(const std::string& name, int64_t low, int64_t high) {
  const Json* value = find(name);
  if (!value) return std::nullopt;
  return read_integer(*value, full_name(name), low, high);
}

std::optional<double> RequestFields::number(const std::string& name, double low, double high,
                                            bool open_low) {
  const Json* value = find(name);
  if (!value) return std::nullopt;
  if (!value->is_number()) throw bad_field(full_name(name), "must be a number", "invalid_type");
  const double number = value->get<double>();
  const bool inside = number <= high && (open_low ? number > low : number >= low);
  if (!inside)
    throw bad_field(full_name(name),
                    fmt::format("must lie in {}{}, {}], not {}", open_low ? "(" : "[", low, high,
                                value->dump()),
                    "out_of_range");
  return number;
}

std::optional<std::string> RequestFields::text(const std::string& name) {
  const Json* value = find(name);
  if (!value) return std::nullopt;
  if (!value->is_string()) throw bad_field(full_name(name), "must be a text", "invalid_type");
  return value->get<std::string>();
}

std::optional<std::string> RequestFields::choice(const std::string& name,
                                                 const std::vector<std::string>& choices) {
  std::optional<std::string> value = text(name);
  if (value && std::ranges::find(choices, *value) == choices.end())
    throw bad_field(full_name(name), fmt::format("must be one of {}, not \"{}\"",
                                                 fmt::join(choices, ", "), shortened(*value)));
  return value;
}

std::optional<std::vector<std::string>> RequestFields::text_or_texts(const std::string& name) {
  const Json* value = find(name);
  if (!value) return std::nullopt;
  if (value->is_string()) return std::vector{value->get<std::string>()};
  if (!value->is_array())
    throw bad_field(full_name(name), "must be a text or a list of texts", "invalid_type");
  for (size_t i = 0; i < value->size(); ++i)
    if (!(*value)[i].is_string())
      throw bad_field(fmt::format("{}[{}]", full_name(name), i), "must be a text", "invalid_type");
  return value->get<std::vector<std::string>>();
}

void RequestFields::allow_null_only(std::initializer_list<const char*> names) {
  for (const char* name : names) {
    null_only_.insert(name);
    if (const auto value = object_.find(name); value != object_.end() && !value->is_null())
      throw bad_field(full_name(name), "is not supported; leave it out", "unsupported");
  }
}

void RequestFields::reject_unknown() const {
  for (const auto& [name, value] : object_.items()) {
    if (known_.contains(name) || null_only_.contains(name)) continue;
    const std::vector<std::string> known(known_.begin(), known_.end());
    throw bad_field(full_name(name),
                    fmt::format("unknown field{}; known are {}", suggestion(name, known),
                                fmt::join(known, ", ")),
                    "unknown_field");
  }
}

}  // namespace sol
