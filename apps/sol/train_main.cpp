// sol-train: the program with LibTorch, which `sol train`, `sol plan` and every command with a
// LibTorch device start; see main.cpp.
#include "commands.h"
#include "device.h"
#include "engine_torch/torch_model.h"
#include "openblas_environment.h"
#include "program.h"

int main(int argc, char** argv) {
  using namespace sol::app;
  if (wants_torch_device(argc, argv)) choose_openblas_kernels();
  set_device_loader(sol::load_torch_model);
  return run_program(argc, argv, [](CLI::App& app) {
    add_commands(app, [](CLI::App& to) {
      add_train_command(to);
      add_plan_command(to);
    });
  });
}
