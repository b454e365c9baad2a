// sol: a frozen Llama with a budget dial.
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <exception>
#include <new>

#include "base/build_info.h"
#include "base/cpu.h"
#include "commands.h"
#include "common.h"

namespace {

constexpr int failed = 1;
constexpr int wrong_usage = 2;
constexpr int interrupted = 128 + SIGINT;
constexpr int output_closed = 128 + SIGPIPE;

std::string version_text() {
  std::string isas;
  for (const sol::Isa isa : sol::supported_isas()) {
    if (!isas.empty()) isas += ' ';
    isas += sol::to_string(isa);
  }
#ifdef SOL_TRAINING
  const char* training = "yes";
#else
  const char* training = "no";
#endif
  return fmt::format(
      "sol {}\ncommit:      {}\ntraining:    {}\ninstructions: {} in use; this machine has {}\n"
      "processor:   {}",
      sol::build_version(), sol::build_commit(), training, sol::to_string(sol::current_isa()), isas,
      sol::cpu_description());
}

int run(int argc, char** argv) {
  CLI::App app{"sol: a frozen Llama with a budget dial"};
  app.require_subcommand(1);
  app.set_version_flag("--version", version_text, "Version, commit and instruction sets");
  sol::app::add_generate_command(app);
#ifdef SOL_TRAINING
  sol::app::add_train_command(app);
#endif
  sol::app::add_sweep_command(app);
  sol::app::add_eval_command(app);
  sol::app::add_probe_command(app);
  sol::app::add_inspect_command(app);
  sol::app::add_tokenize_commands(app);
  sol::app::add_logits_command(app);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    // CLI11 also ends --help and --version this way, with code 0.
    return app.exit(error) == 0 ? 0 : wrong_usage;
  }
  return 0;
}

// Buffered output that could not be written must not pass for success.
int finish_output(int code) {
  std::fflush(nullptr);
  if (!std::ferror(stdout)) return code;
  if (errno == EPIPE) return output_closed;
  std::fprintf(stderr, "sol: cannot write to standard output: %s\n", std::strerror(errno));
  return failed;
}

}  // namespace

int main(int argc, char** argv) {
  // A reader that goes away is an error of that write, not the end of a run that also writes files.
  std::signal(SIGPIPE, SIG_IGN);
  // Likewise a file that grows beyond the user's limit.
  std::signal(SIGXFSZ, SIG_IGN);
  try {
    return finish_output(run(argc, argv));
  } catch (const sol::app::OutputClosed&) {
    return output_closed;
  } catch (const sol::Cancelled&) {
    std::fprintf(stderr, "sol: interrupted\n");
    return interrupted;
  } catch (const std::bad_alloc&) {
    std::fprintf(stderr, "sol: out of memory\n");
  } catch (const std::exception& error) {
    std::fprintf(stderr, "sol: %s\n", error.what());
  }
  return failed;
}
