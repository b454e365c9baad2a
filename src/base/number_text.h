// Numbers in texts that people type: the whole text or nothing.
#pragma once

#include <charconv>
#include <optional>
#include <string_view>

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

}  // namespace sol
