#include "commands.h"

namespace sol::app {

void add_inspect_command(CLI::App&) {}

}  // namespace sol::app
