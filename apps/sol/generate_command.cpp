#include "commands.h"

namespace sol::app {

void add_generate_command(CLI::App&) {}

}  // namespace sol::app
