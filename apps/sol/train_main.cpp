// sol-train: what `sol train` and `sol plan` start; see main.cpp.
#include "commands.h"
#include "program.h"

int main(int argc, char** argv) {
  return sol::app::run_program(argc, argv, [](CLI::App& app) {
    sol::app::add_train_command(app);
    sol::app::add_plan_command(app);
  });
}
