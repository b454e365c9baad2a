#include "commands.h"

namespace sol::app {

void add_sweep_command(CLI::App&) {}

}  // namespace sol::app
