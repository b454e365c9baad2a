// What is wrong with a command line, and what was probably meant.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace sol::app {

// The command of `app` that argv names, or null where it names none.
const CLI::App* named_command(const CLI::App& app, int argc, char** argv);

// One or two lines for the error that parsing argv ended with.
std::string usage_error(const CLI::App& app, const CLI::ParseError& error, int argc, char** argv);

}  // namespace sol::app
