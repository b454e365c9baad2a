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

bool has_empty_element(std::string_view list, char delimiter) {
  const char twice[] = {delimiter, delimiter, '\0'};
  return list.starts_with(delimiter) || list.ends_with(delimiter) || list.find(twice) != list.npos;
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
    if (option->get_delimiter() != '\0')
      option->transform([](const std::string& text) { return CLI::detail::trim_copy(text); });
  }
  for (CLI::App* sub : command.get_subcommands({})) reject_empty_values(*sub);
}

void reject_empty_assignments(const CLI::App& command, std::span<char* const> arguments) {
  const CLI::Option* list = nullptr;  // the option whose value follows, of those that take a list
  for (const std::string_view argument : arguments) {
    if (argument == "--") return;
    const size_t equals = argument.starts_with("--") ? argument.find('=') : argument.npos;
    const std::string name(argument.substr(0, equals));
    std::string_view value = argument;
    if (argument.starts_with("-")) {
      list = command.get_option_no_throw(name);
      if (list && list->get_delimiter() == '\0') list = nullptr;
      if (equals == argument.npos) continue;
      value.remove_prefix(equals + 1);
      if (value.empty()) throw CLI::ValidationError(name, "must not be empty");
    }
    if (!list) continue;
    if (has_empty_element(value, list->get_delimiter()))
      throw CLI::ValidationError(list->get_name(),
                                 fmt::format("\"{}\" lists an empty value; remove it", value));
    if (list->get_items_expected_max() <= 1) list = nullptr;
  }
}

}  // namespace sol::app
