#include "commands.h"

namespace sol::app {

void add_tokenize_commands(CLI::App&) {}

}  // namespace sol::app
