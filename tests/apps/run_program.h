// Runs the built `sol` as a user would and captures what it says.
#pragma once

#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

#include "support.h"

namespace sol::test {

struct RunOptions {
  std::string input = {};                     // standard input
  long file_size_limit = -1;                  // bytes a file may have: a disk that fills; -1: none
  long address_limit = -1;                    // bytes of addresses, as `ulimit -v`; -1: none
  std::vector<std::string> environment = {};  // "NAME=value"
  bool close_output = false;                  // nobody reads standard output
  std::string interrupt_when = {};  // send a signal once this stands in what it has written
  int interrupt_signal = SIGINT;
  bool interrupt_group = false;      // as a terminal does: the program and what it has started
  double kill_after = 0;             // seconds until SIGKILL; 0: never
  std::string kill_clock_from = {};  // from when this stands in what it has written; empty: start
};

struct RunResult {
  int code = -1;  // exit status; -1 when a signal ended it
  int signal = 0;
  std::string out, err;
};

inline void PrintTo(const RunResult& result, std::ostream* stream) {
  *stream << "exit " << result.code << ", signal " << result.signal << "\nout: " << result.out
          << "\nerr: " << result.err;
}

inline RunResult run_program(const std::string& program, const std::vector<std::string>& arguments,
                             const RunOptions& options = {}) {
  std::array<std::array<int, 2>, 3> pipes{};
  for (auto& ends : pipes)
    if (pipe2(ends.data(), O_CLOEXEC) != 0) throw std::runtime_error("pipe failed");

  std::vector<char*> argv{const_cast<char*>(program.c_str())};
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);

  const pid_t child = fork();
  if (child < 0) throw std::runtime_error("fork failed");
  if (child == 0) {
    if (options.interrupt_group) setpgid(0, 0);
    dup2(pipes[0][0], 0);
    dup2(pipes[1][1], 1);
    dup2(pipes[2][1], 2);
    for (const std::string& setting : options.environment)
      putenv(const_cast<char*>(setting.c_str()));
    if (options.file_size_limit >= 0) {
      const auto bytes = static_cast<rlim_t>(options.file_size_limit);
      const rlimit limit{bytes, bytes};
      setrlimit(RLIMIT_FSIZE, &limit);
    }
    if (options.address_limit >= 0) {
      const auto bytes = static_cast<rlim_t>(options.address_limit);
      const rlimit limit{bytes, bytes};
      setrlimit(RLIMIT_AS, &limit);
    }
    execv(program.c_str(), argv.data());
    _exit(126);
  }

  close(pipes[0][0]);
  close(pipes[1][1]);
  close(pipes[2][1]);
  if (options.close_output) close(pipes[1][0]);
  // Inputs here are smaller than a pipe's buffer, so that writing cannot wait for the child.
  if (options.input.size() > 60000) throw std::runtime_error("test input too large");
  std::signal(SIGPIPE, SIG_IGN);
  [[maybe_unused]] const auto written =
      write(pipes[0][1], options.input.data(), options.input.size());
  close(pipes[0][1]);
  RunResult result;
  bool interrupted = options.interrupt_when.empty();
  std::array<pollfd, 2> reading{pollfd{options.close_output ? -1 : pipes[1][0], POLLIN, 0},
                                pollfd{pipes[2][0], POLLIN, 0}};
  const std::array<std::string*, 2> texts{&result.out, &result.err};
  auto start = std::chrono::steady_clock::now();
  const auto left_to_live = [&] {
    const std::chrono::duration<double> lived = std::chrono::steady_clock::now() - start;
    return static_cast<int>(std::max(0.0, 1000 * (options.kill_after - lived.count())));
  };
  bool mortal = options.kill_after > 0 && options.kill_clock_from.empty();
  bool clock_waits = options.kill_after > 0 && !mortal;
  while (reading[0].fd >= 0 || reading[1].fd >= 0) {
    const int ready = poll(reading.data(), reading.size(), mortal ? left_to_live() : -1);
    if (mortal && left_to_live() == 0) {
      kill(child, SIGKILL);
      mortal = false;
    }
    if (ready < 0) {
      if (errno == EINTR) continue;
      throw std::runtime_error(std::string("poll: ") + std::strerror(errno));
    }
    for (size_t i = 0; i < reading.size(); ++i) {
      if (reading[i].fd < 0 || reading[i].revents == 0) continue;
      std::array<char, 65536> buffer;
      const ssize_t got = read(reading[i].fd, buffer.data(), buffer.size());
      if (got > 0) {
        texts[i]->append(buffer.data(), static_cast<size_t>(got));
        if (clock_waits && texts[i]->find(options.kill_clock_from) != std::string::npos) {
          start = std::chrono::steady_clock::now();
          mortal = true;
          clock_waits = false;
        }
        if (!interrupted && texts[i]->find(options.interrupt_when) != std::string::npos) {
          kill(options.interrupt_group ? -child : child, options.interrupt_signal);
          interrupted = true;
        }
      } else {
        close(reading[i].fd);
        reading[i].fd = -1;
      }
    }
  }
  int status = 0;
  waitpid(child, &status, 0);
  if (WIFEXITED(status)) result.code = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) result.signal = WTERMSIG(status);
  return result;
}

inline RunResult run_sol(const std::vector<std::string>& arguments,
                         const RunOptions& options = {}) {
  return run_program(SOL_BINARY, arguments, options);
}

// A failure as a user should meet it: exit status 1 or 2, one clear message that contains `words`,
// nothing on standard output, no crash.
inline void expect_error(const RunResult& result, const std::vector<std::string>& words) {
  EXPECT_TRUE(result.code == 1 || result.code == 2) << testing::PrintToString(result);
  EXPECT_EQ(result.out, "");
  EXPECT_FALSE(result.err.empty());
  for (const std::string& word : words)
    EXPECT_NE(result.err.find(word), std::string::npos) << "no \"" << word << "\" in:\n"
                                                        << testing::PrintToString(result);
}

}  // namespace sol::test
