// Numbers in texts that people type: the whole text or nothing.
#pragma once

#include <fmt/format.h>

#include <charconv>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

namespace sol {

// A number in decimal digits; none where the text is empty, holds anything beside it (blanks too)
// or does not fit. A double may be "inf" or "nan".
template <typename T>
std::optional<T> parse_number(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// What a number must be that is one, but none that a T holds: "a whole number of at most
// 2147483647". `negative` is its sign.
template <typename T>
std::string fitting_number(bool negative) {
  using Limits = std::numeric_limits<T>;
  if (std::is_floating_point_v<T>)
    return fmt::format("a number that {} precision holds",
                       std::is_same_v<T, float> ? "single" : "double");
  if (negative) return fmt::format("a whole number of at least {}", Limits::min());
  return fmt::format("a whole number of at most {}", Limits::max());
}

}  // namespace sol
