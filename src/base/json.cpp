#include "base/json.h"

#include <cmath>
#include <concepts>
#include <limits>
#include <type_traits>
#include <unordered_set>
#include <vector>

#include "base/fail.h"
#include "base/file_io.h"
#include "base/number_text.h"
#include "base/shown_text.h"
#include "base/small_numbers.h"
#include "base/zero_bytes.h"

namespace sol {
namespace {

template <typename T>
constexpr const char* type_name() {
  if constexpr (std::is_same_v<T, bool>) return "true or false";
  if constexpr (std::is_same_v<T, int> || std::is_same_v<T, int64_t>) return "a whole number";
  if constexpr (std::is_same_v<T, uint64_t>) return "a whole number that is not negative";
  if constexpr (std::is_floating_point_v<T>) return "a number";
  if constexpr (std::is_same_v<T, std::string>) return "a string";
}

std::string shown(const Json& value) {
  if (value.is_structured()) return value.is_object() ? "an object" : "an array";
  return shortened(to_text(value), 60);
}

// Python writes 10.0 where it holds a float, so an integral float counts as an integer.
template <std::integral T>
bool convert_integer(const Json& value, T& out) {
  if (value.is_number_unsigned()) {
    const uint64_t number = value.get<uint64_t>();
    if (!std::in_range<T>(number)) return false;
    out = static_cast<T>(number);
    return true;
  }
  if (value.is_number_integer()) {
    const int64_t number = value.get<int64_t>();
    if (!std::in_range<T>(number)) return false;
    out = static_cast<T>(number);
    return true;
  }
  if (!value.is_number_float()) return false;
  const double number = value.get<double>();
  // Beyond 2^53 a double does not tell which integer was meant.
  if (std::trunc(number) != number || std::abs(number) > 0x1p53) return false;
  if (!std::in_range<T>(static_cast<int64_t>(number))) return false;
  out = static_cast<T>(number);
  return true;
}

template <typename T>
bool convert(const Json& value, T& out) {
  if constexpr (std::is_same_v<T, bool>) {
    if (!value.is_boolean()) return false;
    out = value.get<bool>();
    return true;
  } else if constexpr (std::is_integral_v<T>) {
    return convert_integer(value, out);
  } else if constexpr (std::is_floating_point_v<T>) {
    if (!value.is_number()) return false;
    const double number = value.get<double>();
    if (std::abs(number) > static_cast<double>(std::numeric_limits<T>::max())) return false;
    out = static_cast<T>(number);
    return true;
  } else {
    if (!value.is_string()) return false;
    out = value.get<std::string>();
    return true;
  }
}

const Json* find(const Json& object, const char* field, const std::string& where) {
  if (!object.is_object()) fail("{}: expected an object with a field \"{}\"", where, field);
  const auto it = object.find(field);
  return it == object.end() ? nullptr : &*it;
}

// What a value must be that is not a T.
template <typename T>
std::string wanted([[maybe_unused]] const Json& value) {
  if constexpr (std::is_arithmetic_v<T> && !std::is_same_v<T, bool>) {
    const double number = value.is_number() ? value.get<double>() : 0.0;
    const bool whole = std::is_floating_point_v<T> || std::trunc(number) == number;
    // The bounds themselves would have been converted.
    const bool low = number <= static_cast<double>(std::numeric_limits<T>::lowest());
    const bool high = number >= static_cast<double>(std::numeric_limits<T>::max());
    if (whole && (high || (low && std::is_signed_v<T>))) return fitting_number<T>(low);
  }
  return type_name<T>();
}

template <typename T>
T convert_or_fail(const Json& value, const char* field, const std::string& where) {
  T out{};
  if (!convert(value, out))
    fail("{}: field \"{}\" must be {}, not {}", where, field, wanted<T>(value), shown(value));
  return out;
}

// Far beyond what anybody nests; each level costs a hundred times the byte that opens it.
constexpr int most_levels = 256;

// Notes the keys of every object that is open, to find those that occur twice.
class ParseCheck {
 public:
  explicit ParseCheck(const std::string& where) : where_(where) {}

  bool operator()(int depth, Json::parse_event_t event, Json& value) {
    if (depth > most_levels) fail("{}: nested more than {} levels deep", where_, most_levels);
    if (event == Json::parse_event_t::object_start) open_.emplace_back();
    if (event == Json::parse_event_t::object_end) open_.pop_back();
    if (event == Json::parse_event_t::key) {
      const auto& key = value.get_ref<const std::string&>();
      if (!open_.back().insert(key).second)
        fail("{}: field \"{}\" is given twice in one object", where_, shortened(key));
    }
    return true;
  }

 private:
  const std::string& where_;
  std::vector<std::unordered_set<std::string>> open_;
};

// The library repeats what it could not read.
std::string as_utf8(const std::string& text) {
  return Json::parse(to_text(text)).get<std::string>();
}

}  // namespace

std::string json_reason(const char* what, bool lines) {
  // "[json.exception.parse_error.101] parse error at line 1, column 2: syntax error ..."
  std::string_view reason = what;
  if (const size_t end = reason.find("] "); reason.starts_with('[') && end != reason.npos)
    reason.remove_prefix(end + 2);
  if (constexpr std::string_view line = "parse error at line 1, ";
      !lines && reason.starts_with(line))
    reason.remove_prefix(line.size());
  // It repeats what was read last, a text of any length.
  return as_utf8(shortened(reason, 300));
}

std::string to_text(const Json& json, int indent) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

Json parse_json(std::string_view text, const std::string& where, JsonNumbers numbers) {
  refuse_zero_bytes(text, where);
  try {
    return Json::parse(text, ParseCheck(where));
  } catch (const Json::out_of_range& error) {
    if (numbers == JsonNumbers::ignored) return parse_json(with_small_numbers(text), where);
    fail("{}: a number is too large, the largest being 1.8e308: {}", where,
         json_reason(error.what()));
  } catch (const Json::exception& error) {
    const bool lines = text.find('\n') != text.npos;
    fail("{}: not valid JSON: {}", where, json_reason(error.what(), lines));
  }
}

Json read_json(const std::filesystem::path& path, uint64_t limit) {
  return parse_json(read_file(path, limit), path.string());
}

template <typename T>
T json_get(const Json& object, const char* field, const std::string& where) {
  const Json* value = find(object, field, where);
  if (!value) fail("{}: field \"{}\" is missing", where, field);
  return convert_or_fail<T>(*value, field, where);
}

template <typename T>
T json_get_or(const Json& object, const char* field, T fallback, const std::string& where) {
  const Json* value = find(object, field, where);
  if (!value) return fallback;
  return convert_or_fail<T>(*value, field, where);
}

#define SOL_INSTANTIATE(T)                                              \
  template T json_get<T>(const Json&, const char*, const std::string&); \
  template T json_get_or<T>(const Json&, const char*, T, const std::string&)
SOL_INSTANTIATE(bool);
SOL_INSTANTIATE(int);
SOL_INSTANTIATE(int64_t);
SOL_INSTANTIATE(uint64_t);
SOL_INSTANTIATE(float);
SOL_INSTANTIATE(double);
SOL_INSTANTIATE(std::string);
#undef SOL_INSTANTIATE

}  // namespace sol
