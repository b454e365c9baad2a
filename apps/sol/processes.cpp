#include "processes.h"

#include <spawn.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/fail.h"
#include "base/free_port.h"
#include "common.h"
#include "restart.h"

namespace sol::app {
namespace {

constexpr const char* parent_variable = "SOL_PARENT";
constexpr const char* processes_variable = "SOL_PROCESSES";  // of run_processes alone
constexpr std::chrono::seconds patience{10}, patience_when_told{120};

pid_t start_rank(int rank, int count, int port) {
  return start_child("/proc/self/exe", process_arguments(),
                     {fmt::format("RANK={}", rank), fmt::format("WORLD_SIZE={}", count),
                      fmt::format("LOCAL_RANK={}", rank), fmt::format("LOCAL_WORLD_SIZE={}", count),
                      std::string("MASTER_ADDR=127.0.0.1"), fmt::format("MASTER_PORT={}", port),
                      fmt::format("{}={}", processes_variable, count)});
}

int exit_code(int status) {
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

void signal_all(const std::vector<pid_t>& children, int number) {
  for (const pid_t child : children)
    if (child > 0) kill(child, number);
}

}  // namespace

pid_t start_child(const std::filesystem::path& program, std::vector<std::string> arguments,
                  std::vector<std::string> variables) {
  variables.push_back(fmt::format("{}={}", parent_variable, getpid()));
  // Ours come first: a later one of the same name is not looked at.
  std::vector<char*> environment;
  for (std::string& variable : variables) environment.push_back(variable.data());
  for (char** other = environ; *other; ++other) environment.push_back(*other);
  environment.push_back(nullptr);
  std::vector<char*> words;
  for (std::string& argument : arguments) words.push_back(argument.data());
  words.push_back(nullptr);
  // Groups of their own: Ctrl-C in a terminal reaches this process only, which passes it on once; a
  // second signal would end them in the middle of things.
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  pid_t child = -1;
  const int error =
      posix_spawn(&child, program.c_str(), nullptr, &attributes, words.data(), environment.data());
  posix_spawnattr_destroy(&attributes);
  if (error != 0) {
    errno = error;
    return -1;
  }
  return child;
}

bool started_by_run_processes() {
  return std::getenv(processes_variable) != nullptr;
}

void end_with_parent() {
  const char* parent = std::getenv(parent_variable);
  if (!parent) return;
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (std::string_view(parent) != std::to_string(getppid())) std::raise(SIGTERM);  // gone already
}

int run_processes(int count) {
  const std::stop_token stop = interrupt_token();
  const int port = free_port();
  std::vector<pid_t> children;  // 0: has ended
  for (int rank = 0; rank < count; ++rank) {
    children.push_back(start_rank(rank, count, port));
    if (children.back() > 0) continue;
    const int reason = errno;
    signal_all(children, SIGKILL);
    fail("--processes: process {} of {} cannot be started: {}", rank + 1, count,
         std::strerror(reason));
  }
  int code = 0, left = count;
  bool passed_on = false, stopped = false, killed = false;
  using Clock = std::chrono::steady_clock;
  auto deadline = Clock::time_point::max();  // for those that are left
  while (left > 0) {
    if (stop.stop_requested() && !passed_on) {
      signal_all(children, SIGTERM);
      signal_all(children, SIGCONT);  // one that is stopped would never see it
      passed_on = true;
    }
    if (!killed && Clock::now() > deadline) {
      signal_all(children, SIGKILL);
      killed = true;
    }
    int status = 0;
    const pid_t ended = waitpid(-1, &status, WNOHANG);
    if (ended <= 0) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      continue;
    }
    --left;
    for (size_t rank = 0; rank < children.size(); ++rank) {
      if (children[rank] != ended) continue;
      children[rank] = 0;
      if (WIFSIGNALED(status))
        note("rank {} was ended by signal {} ({})", rank, WTERMSIG(status),
             strsignal(WTERMSIG(status)));
    }
    const int ended_with = exit_code(status);
    if (passed_on && ended_with == 128 + SIGTERM) {
      // Told to, it did; the leading process may still be writing a checkpoint.
      stopped = true;
      deadline = std::min(deadline, Clock::now() + patience_when_told);
    } else if (ended_with != 0 && code == 0) {
      code = ended_with;
      deadline = Clock::now() + patience;
    }
  }
  // The leading process has said how to go on; the exit status is that of our own signal.
  if (code == 0 && stopped) throw CancelledQuietly();
  return code;
}

}  // namespace sol::app
