// Checks of options' values, with messages that say what is allowed.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <limits>
#include <span>

namespace sol::app {

// A whole number in decimal digits, from `low` to `high`. Whatever does not fit into 64 bits is out
// of range rather than wrapped.
CLI::Validator in_range(int64_t low, uint64_t high);
// As the largest int allows: what integer options are stored in.
CLI::Validator at_least(int low);

// A finite number from `low` to `high`, both included.
CLI::Validator number_in(double low, double high);
// A finite number that is more than 0 and at most `high`.
CLI::Validator positive_number(double high = std::numeric_limits<double>::max());

// Makes "--option ''" of every option of `command` and its subcommands wrong usage: an unset
// variable of a shell script must not pass for an option that was not given. Blanks around the
// elements of a list are no part of them: "16, 36".
void reject_empty_values(CLI::App& command);

// Throws CLI::ValidationError for "--option=" and for a list with an empty element ("16,,36") among
// the arguments of `command`: the parser would take the next argument for the value of the first,
// and drop what is empty from the second.
void reject_empty_assignments(const CLI::App& command, std::span<char* const> arguments);

}  // namespace sol::app
