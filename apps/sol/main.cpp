// sol: a frozen Llama with a budget dial.
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string_view>

#include "base/build_info.h"
#include "base/cpu.h"
#include "base/fail.h"
#include "commands.h"
#include "program.h"

namespace {

#ifdef SOL_TRAINING
constexpr bool has_training = true;
#else
constexpr bool has_training = false;
#endif

std::string version_text() {
  std::string isas;
  for (const sol::Isa isa : sol::supported_isas()) {
    if (!isas.empty()) isas += ' ';
    isas += sol::to_string(isa);
  }
  return fmt::format(
      "sol {}\ncommit:       {}\ntraining:     {}\ninstructions: {} in use; this machine has {}\n"
      "processor:    {}",
      sol::build_version(), sol::build_commit(), has_training ? "yes" : "no",
      sol::to_string(sol::current_isa()), isas, sol::cpu_description());
}

// Training and its planning are a program of its own beside this one: merely starting with
// LibTorch's libraries takes half a second, which no other command should pay.
[[noreturn]] void start_training(char** argv) {
  const auto path = std::filesystem::read_symlink("/proc/self/exe").parent_path() / "sol-train";
  execv(path.c_str(), argv);
  sol::fail("cannot start {}: {}", path.string(), std::strerror(errno));
}

}  // namespace

int main(int argc, char** argv) {
  using namespace sol::app;
  return run_program(argc, argv, [&](CLI::App& app) {
    const std::string_view command = argc > 1 ? argv[1] : "";
    if (has_training && (command == "train" || command == "plan")) start_training(argv);
    app.set_version_flag("--version", version_text, "Version, commit and instruction sets");
    add_generate_command(app);
    add_serve_command(app);
    if (has_training) {
      app.add_subcommand("train", "Train a controller for a frozen model");
      app.add_subcommand("plan", "What training a controller will take in memory and time");
    }
    add_prepare_command(app);
    add_report_command(app);
    add_sweep_command(app);
    add_tasks_command(app);
    add_eval_command(app);
    add_probe_command(app);
    add_reproduce_command(app);
    add_bench_command(app);
    add_calibrate_command(app);
    add_inspect_command(app);
    add_convert_command(app);
    add_tokenize_commands(app);
    add_logits_command(app);
  });
}
