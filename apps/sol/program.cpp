#include "program.h"

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <exception>
#include <new>

#include "common.h"

namespace sol::app {
namespace {

constexpr int failed = 1;
constexpr int wrong_usage = 2;
constexpr int interrupted = 128 + SIGINT;
constexpr int output_closed = 128 + SIGPIPE;

int parse(int argc, char** argv, const std::function<void(CLI::App&)>& add_commands) {
  CLI::App app{"sol: a frozen Llama with a budget dial", "sol"};
  app.require_subcommand(1);
  add_commands(app);
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

int run_program(int argc, char** argv, const std::function<void(CLI::App&)>& add_commands) {
  // A reader that goes away is an error of that write, not the end of a run that also writes files.
  std::signal(SIGPIPE, SIG_IGN);
  // Likewise a file that grows beyond the user's limit.
  std::signal(SIGXFSZ, SIG_IGN);
  try {
    return finish_output(parse(argc, argv, add_commands));
  } catch (const OutputClosed&) {
    return output_closed;
  } catch (const Cancelled&) {
    std::fprintf(stderr, "sol: interrupted\n");
    return interrupted;
  } catch (const std::bad_alloc&) {
    std::fprintf(stderr, "sol: out of memory\n");
  } catch (const std::exception& error) {
    std::fprintf(stderr, "sol: %s\n", error.what());
  }
  return failed;
}

}  // namespace sol::app
