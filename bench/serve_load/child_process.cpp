#include "serve_load/child_process.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <thread>

#include "base/fail.h"

namespace sol::load {
namespace {

using Clock = std::chrono::steady_clock;

std::array<int, 2> make_pipe() {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) fail("no pipe: {}", std::strerror(errno));
  return ends;
}

// `errors`: -1 for ours. The descriptors are closed here.
pid_t start(const std::filesystem::path& program, const std::vector<std::string>& arguments,
            int output, int errors) {
  if (access(program.c_str(), X_OK) != 0)
    fail("cannot run {}: {}", program.string(), std::strerror(errno));
  std::vector<char*> argv{const_cast<char*>(program.c_str())};
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child < 0) fail("cannot start {}: {}", program.string(), std::strerror(errno));
  if (child == 0) {
    // A benchmark that is interrupted leaves no server behind.
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(126);
    dup2(output, 1);
    if (errors >= 0) dup2(errors, 2);
    execv(program.c_str(), argv.data());
    _exit(126);
  }
  close(output);
  if (errors >= 0) close(errors);
  return child;
}

int status_of(int waited) {
  return WIFSIGNALED(waited) ? 128 + WTERMSIG(waited) : WEXITSTATUS(waited);
}

// Appends what there is; false at the end.
bool read_some(int descriptor, std::string& text) {
  std::array<char, 65536> buffer;
  ssize_t got;
  do {
    got = read(descriptor, buffer.data(), buffer.size());
  } while (got < 0 && errno == EINTR);
  if (got <= 0) return false;
  text.append(buffer.data(), static_cast<size_t>(got));
  return true;
}

}  // namespace

ChildProcess::ChildProcess(const std::filesystem::path& program,
                           const std::vector<std::string>& arguments) {
  const std::array<int, 2> output = make_pipe();
  output_ = output[0];
  id_ = start(program, arguments, output[1], -1);
}

ChildProcess::~ChildProcess() {
  if (running()) {
    kill(id_, SIGKILL);
    wait(std::chrono::seconds{10});
  }
  close(output_);
}

std::optional<std::string> ChildProcess::read_line(std::chrono::milliseconds patience) {
  const auto deadline = Clock::now() + patience;
  for (;;) {
    if (const size_t end = read_.find('\n'); end != std::string::npos) {
      std::string line = read_.substr(0, end);
      read_.erase(0, end + 1);
      return line;
    }
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
    pollfd waited{output_, POLLIN, 0};
    if (left.count() <= 0 || poll(&waited, 1, static_cast<int>(left.count())) == 0)
      return std::nullopt;
    if (!read_some(output_, read_)) return std::nullopt;
  }
}

void ChildProcess::signal(int number) {
  if (running()) kill(id_, number);
}

std::optional<int> ChildProcess::wait(std::chrono::milliseconds patience) {
  const auto deadline = Clock::now() + patience;
  while (!status_) {
    int waited = 0;
    if (waitpid(id_, &waited, WNOHANG) == id_) {
      status_ = status_of(waited);
      break;
    }
    if (Clock::now() >= deadline) break;
    std::this_thread::sleep_for(std::chrono::milliseconds{5});
  }
  return status_;
}

Finished run_to_end(const std::filesystem::path& program,
                    const std::vector<std::string>& arguments) {
  const std::array<int, 2> output = make_pipe(), errors = make_pipe();
  const pid_t child = start(program, arguments, output[1], errors[1]);
  Finished finished;
  // Its standard error is short: it fits the pipe while the output is read.
  while (read_some(output[0], finished.output)) {
  }
  while (read_some(errors[0], finished.errors)) {
  }
  close(output[0]);
  close(errors[0]);
  int waited = 0;
  while (waitpid(child, &waited, 0) < 0 && errno == EINTR) {
  }
  finished.status = status_of(waited);
  return finished;
}

}  // namespace sol::load
