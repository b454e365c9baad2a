#include "commands.h"

namespace sol::app {

void add_train_command(CLI::App&) {}

}  // namespace sol::app
