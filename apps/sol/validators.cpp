#include "validators.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <string>
#include <string_view>

#include "base/number_text.h"

namespace sol::app {
namespace {

constexpr uint64_t largest_int = std::numeric_limits<int>::max();

bool whole_number_within(const std::string& text, int64_t low, uint64_t high) {
  if (const auto natural = parse_number<uint64_t>(text))
    return *natural <= high && (low <= 0 || *natural >= static_cast<uint64_t>(low));
  const auto negative = parse_number<int64_t>(text);
  return negative && *negative < 0 && *negative >= low;
}

// `allowed`: "a whole number from 1 to 8".
template <typename Holds>
CLI::Validator validator(const std::string& allowed, const std::string& brief, Holds holds) {
  return CLI::Validator(
      [allowed, holds](std::string& text) {
        if (holds(text)) return std::string();
        return fmt::format("must be {}, not \"{}\"", allowed, text);
      },
      brief);
}

}  // namespace

CLI::Validator in_range(int64_t low, uint64_t high) {
  return validator(
      fmt::format("a whole number from {} to {}", low, high),
      high >= largest_int ? fmt::format(">= {}", low) : fmt::format("{}..{}", low, high),
      [=](const std::string& text) { return whole_number_within(text, low, high); });
}

CLI::Validator at_least(int low) {
  return in_range(low, largest_int);
}

CLI::Validator number_in(double low, double high) {
  return validator(fmt::format("a number from {} to {}", low, high),
                   fmt::format("{}..{}", low, high), [=](const std::string& text) {
                     const auto value = parse_number<double>(text);
                     return value && *value >= low && *value <= high;
                   });
}

CLI::Validator positive_number(double high) {
  const bool bounded = high < std::numeric_limits<double>::max();
  return validator(
      fmt::format("a number of more than 0{}", bounded ? fmt::format(", at most {}", high) : ""),
      "> 0", [high](const std::string& text) {
        const auto value = parse_number<double>(text);
        return value && *value > 0 && *value <= high;
      });
}

void reject_empty_values(CLI::App& command) {
  const CLI::Validator not_empty(
      [](std::string& text) { return std::string(text.empty() ? "must not be empty" : ""); }, "");
  for (CLI::Option* option : command.get_options()) {
    // A prompt, which is the only positional that may be left out, may well be empty: the model
    // then begins by itself.
    const bool prompt = !option->nonpositional() && !option->get_required();
    if (option->get_items_expected_max() > 0 && !prompt) option->check(not_empty);
  }
  for (CLI::App* sub : command.get_subcommands({})) reject_empty_values(*sub);
}

}  // namespace sol::app
