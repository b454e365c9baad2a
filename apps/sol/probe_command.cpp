#include "commands.h"

namespace sol::app {

void add_probe_command(CLI::App&) {}

}  // namespace sol::app
