// What the executables share: parsing, exit statuses, what becomes of an error.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>

namespace sol::app {

struct ProgramText {
  const char* name = "sol";  // in the usage text and before messages
  const char* description = "sol: a frozen Llama with a budget dial";
};

// Parses the command line with the commands that `add_commands` adds and runs the one it names.
// Returns the process's exit status: 0; 1 after an Error, which is printed on standard error; 2 for
// wrong usage; 128 and the signal when interrupted (130, 143); 141 when nobody reads standard
// output any more.
int run_program(int argc, char** argv, const std::function<void(CLI::App&)>& add_commands,
                const ProgramText& text = {});

}  // namespace sol::app
