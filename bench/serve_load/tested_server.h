// The server under test: `sol serve` as a child, and what it says about itself.
#pragma once

#include <csignal>
#include <map>
#include <string>
#include <vector>

#include "base/json.h"
#include "serve_load/child_process.h"
#include "serve_load/settings.h"

namespace sol::load {

class TestedServer {
 public:
  // Starts it on a free port of the loopback address and waits until it is ready. Throws Error when
  // it does not get that far.
  explicit TestedServer(const Settings& settings);

  int port() const { return port_; }
  const Settings& settings() const { return settings_; }
  const std::vector<std::string>& arguments() const { return arguments_; }
  // What /v1/models says of its model.
  const Json& model() const { return model_; }
  const Json& dial() const { return model_["sol"]; }
  int context() const { return dial()["context"].get<int>(); }
  int vocabulary() const { return vocabulary_; }

  // By the series' full name. Throws Error for an answer that is not Prometheus' text format.
  std::map<std::string, double> metrics() const;
  bool alive() { return child_.running(); }
  size_t open_files() const;
  double resident_mib() const;

  void terminate() { child_.signal(SIGTERM); }
  // The exit status; -1 where it has not ended after a minute.
  int wait() { return child_.wait(std::chrono::seconds{60}).value_or(-1); }

 private:
  const Settings settings_;
  std::vector<std::string> arguments_;
  ChildProcess child_;
  int port_ = 0;
  Json model_;
  int vocabulary_ = 0;
};

// `sol serve`'s arguments.
std::vector<std::string> serve_arguments(const Settings& settings);

}  // namespace sol::load
