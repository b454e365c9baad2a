#include "program.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <exception>
#include <new>
#include <string>
#include <string_view>
#include <system_error>

#include "common.h"
#include "restart.h"
#include "usage_error.h"
#include "validators.h"

namespace sol::app {
namespace {

constexpr int failed = 1;
constexpr int wrong_usage = 2;
constexpr int output_closed = 128 + SIGPIPE;

// A descriptor below 3 that is not open would be given to the next file or pipe that is opened, and
// what is meant for the terminal would end up there. Each gets one that fails whoever uses it.
void occupy_standard_descriptors() {
  for (const int wanted : {0, 1, 2}) {
    if (fcntl(wanted, F_GETFD) >= 0 || errno != EBADF) continue;
    [[maybe_unused]] const int opened = open("/dev/null", wanted == 0 ? O_WRONLY : O_RDONLY);
  }
}

// Models and caches are mapped; reading where such a file has been cut short meanwhile raises this.
void on_bus_error(int number, siginfo_t* info, void*) {
  if (info->si_code == BUS_ADRERR) {
    constexpr std::string_view message =
        "sol: a file that is in use (the model, a cache of token ids) has been cut short, or its "
        "disk "
        "cannot be read\n";
    [[maybe_unused]] const auto written = write(2, message.data(), message.size());
    _exit(failed);
  }
  std::signal(number, SIG_DFL);
  std::raise(number);
}

void handle_signals() {
  // A reader that goes away is an error of that write, not the end of a run that also writes files.
  std::signal(SIGPIPE, SIG_IGN);
  // Likewise a file that grows beyond the user's limit.
  std::signal(SIGXFSZ, SIG_IGN);
  // Whoever started us may ignore the end of children, and we would wait for ours in vain.
  std::signal(SIGCHLD, SIG_DFL);
  struct sigaction action {};
  action.sa_sigaction = on_bus_error;
  action.sa_flags = SA_SIGINFO;
  sigemptyset(&action.sa_mask);
  sigaction(SIGBUS, &action, nullptr);
}

int parse(int argc, char** argv, const std::function<void(CLI::App&)>& add_commands,
          const ProgramText& text) {
  CLI::App app{text.description, text.name};
  app.require_subcommand(1);
  add_commands(app);
  reject_empty_values(app);
  try {
    const CLI::App* command = named_command(app, argc, argv);
    reject_empty_assignments(command ? *command : app, {argv, static_cast<size_t>(argc)});
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    // CLI11 also ends --help and --version this way, with code 0.
    if (error.get_exit_code() == 0) return app.exit(error);
    std::fprintf(stderr, "%s: %s\n", text.name, usage_error(app, error, argc, argv).c_str());
    return wrong_usage;
  }
  return 0;
}

// Buffered output that could not be written must not pass for success.
int finish_output(int code, const char* name) {
  std::fflush(nullptr);
  if (!std::ferror(stdout)) return code;
  if (errno == EPIPE) return output_closed;
  std::fprintf(stderr, "%s: cannot write to standard output: %s\n", name, std::strerror(errno));
  return failed;
}

}  // namespace

int run_program(int argc, char** argv, const std::function<void(CLI::App&)>& add_commands,
                const ProgramText& text) {
  const auto print_error = [&](const char* message) {
    std::fprintf(stderr, "%s: %s\n", text.name, message);
  };
  choose_short_spin();
  keep_planned_threads();
  occupy_standard_descriptors();
  handle_signals();
  try {
    return finish_output(parse(argc, argv, add_commands, text), text.name);
  } catch (const OutputClosed&) {
    return output_closed;
  } catch (const CancelledQuietly&) {
    return 128 + interrupting_signal();
  } catch (const Cancelled&) {
    print_error("interrupted");
    return 128 + interrupting_signal();
  } catch (const std::bad_alloc&) {
    print_error("out of memory");
  } catch (const std::system_error& error) {
    // What a thread that cannot be started says is "Resource temporarily unavailable".
    print_error(error.code() == std::errc::resource_unavailable_try_again
                    ? "the system gives no more threads; raise its limit of processes or of memory "
                      "(ulimit -u, ulimit -v, or the container's)"
                    : error.what());
  } catch (const std::exception& error) {
    print_error(error.what());
  }
  return failed;
}

}  // namespace sol::app
