// sol: a frozen Llama with a budget dial.
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <string_view>

#include "base/build_info.h"
#include "base/cpu.h"
#include "base/fail.h"
#include "base/system_memory.h"
#include "commands.h"
#include "device.h"
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

// What needs LibTorch (training, its planning, its devices) is a program of its own beside this
// one: merely starting with its libraries takes half a second, which no other command should pay.
[[noreturn]] void start_torch_program(char** argv) {
  // With less than 1 GiB OpenBLAS asks for its buffers without end, before main; with a little more
  // no model fits beside them.
  sol::require_addresses(uint64_t{3} << 29, "LibTorch");
  const auto path = std::filesystem::read_symlink("/proc/self/exe").parent_path() / "sol-train";
  execv(path.c_str(), argv);
  sol::fail("cannot start {}: {}", path.string(), std::strerror(errno));
}

}  // namespace

int main(int argc, char** argv) {
  using namespace sol::app;
  return run_program(argc, argv, [&](CLI::App& app) {
    const std::string_view command = argc > 1 ? argv[1] : "";
    const bool training = command == "train" || command == "plan";
    if (has_training && (training || wants_torch_device(argc, argv))) start_torch_program(argv);
    app.set_version_flag("--version", version_text, "Version, commit and instruction sets");
    const auto add_names = [](CLI::App& to) {
      to.add_subcommand("train", "Train a controller for a frozen model");
      to.add_subcommand("plan", "What training a controller will take in memory and time");
    };
    add_commands(app, has_training ? +add_names : nullptr);
  });
}
