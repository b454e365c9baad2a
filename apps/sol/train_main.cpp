// sol-train: what `sol train` starts; see main.cpp.
#include "commands.h"
#include "program.h"

int main(int argc, char** argv) {
  return sol::app::run_program(argc, argv, sol::app::add_train_command);
}
