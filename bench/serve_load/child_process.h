// Programs run as children.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace sol::load {

class ChildProcess {
 public:
  // Its standard output is read by read_line(), its standard error goes where ours does. It does
  // not outlive this process. Throws Error when it cannot be started.
  ChildProcess(const std::filesystem::path& program, const std::vector<std::string>& arguments);
  ~ChildProcess();  // kills it where it still runs
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  // The next line of its output; none at the end of it or when it takes longer.
  std::optional<std::string> read_line(std::chrono::milliseconds patience);
  pid_t id() const { return id_; }
  void signal(int number);
  // Its exit status, 128 + N where signal N ended it; none where it still runs after that time.
  std::optional<int> wait(std::chrono::milliseconds patience);
  bool running() { return !wait(std::chrono::milliseconds{0}); }

 private:
  pid_t id_ = -1;
  int output_ = -1;
  std::string read_;
  std::optional<int> status_;
};

struct Finished {
  int status = 0;
  std::string output, errors;
};

// Runs a program to its end.
Finished run_to_end(const std::filesystem::path& program,
                    const std::vector<std::string>& arguments);

}  // namespace sol::load
