#include "serve_load/tested_server.h"

#include <fmt/format.h>

#include <fstream>
#include <iterator>
#include <sstream>
#include <thread>

#include "base/fail.h"
#include "serve_load/client.h"

namespace sol::load {
namespace {

constexpr std::chrono::seconds loading_patience{300};

int read_port(ChildProcess& child) {
  const std::string prefix = "listening on http://127.0.0.1:";
  const auto line = child.read_line(std::chrono::seconds{30});
  if (!line || !line->starts_with(prefix))
    fail("the server does not say where it listens{}", line ? ": " + *line : "");
  return std::stoi(line->substr(prefix.size()));
}

void wait_until_ready(ChildProcess& child, int port) {
  const auto deadline = std::chrono::steady_clock::now() + loading_patience;
  while (fetch(port, "/health").status != 200) {
    if (const auto status = child.wait(std::chrono::milliseconds{20}))
      fail("the server ended with status {} while it was loading", *status);
    if (std::chrono::steady_clock::now() > deadline)
      fail("the server is not ready after {} s", loading_patience.count());
  }
}

Json fetch_json(int port, const std::string& path) {
  const Fetched fetched = fetch(port, path);
  if (fetched.status != 200) fail("GET {} gives {}: {}", path, fetched.status, fetched.body);
  return parse_json(fetched.body, "GET " + path);
}

}  // namespace

std::vector<std::string> serve_arguments(const Settings& settings) {
  std::vector<std::string> arguments{"serve", "--port", "0"};
  const auto add = [&](const char* name, const std::string& value) {
    arguments.insert(arguments.end(), {name, value});
  };
  if (!settings.model.empty()) add("-m", settings.model.string());
  if (!settings.controller.empty()) add("-c", settings.controller.string());
  add("--batch", std::to_string(settings.batch));
  add("--queue", std::to_string(settings.queue));
  add("--request-seconds", fmt::format("{}", settings.request_seconds));
  add("--body-limit", std::to_string(body_limit_mib));
  if (settings.deterministic) arguments.push_back("--deterministic");
  for (const auto* more : {&settings.model_arguments, &settings.serve_arguments})
    arguments.insert(arguments.end(), more->begin(), more->end());
  return arguments;
}

TestedServer::TestedServer(const Settings& settings)
    : settings_(settings), arguments_(serve_arguments(settings)), child_(settings.sol, arguments_) {
  port_ = read_port(child_);
  wait_until_ready(child_, port_);
  model_ = fetch_json(port_, "/v1/models")["data"][0];
  vocabulary_ =
      json_get<int>(fetch_json(port_, "/tokenizer_info"), "vocab_size", "/tokenizer_info");
}

std::map<std::string, double> TestedServer::metrics() const {
  const Fetched fetched = fetch(port_, "/metrics");
  if (fetched.status != 200) fail("GET /metrics gives {}", fetched.status);
  std::map<std::string, double> values;
  std::istringstream lines(fetched.body);
  for (std::string line; std::getline(lines, line);) {
    if (line.empty() || line.starts_with('#')) continue;
    const size_t space = line.rfind(' ');
    char* end = nullptr;
    const double value =
        space == std::string::npos ? 0 : std::strtod(line.c_str() + space + 1, &end);
    if (!line.starts_with("sol_") || !end || end == line.c_str() + space + 1 || *end != '\0')
      fail("/metrics has a line that is no sample: {}", line);
    values[line.substr(0, space)] = value;
  }
  return values;
}

size_t TestedServer::open_files() const {
  std::error_code error;
  const std::filesystem::directory_iterator files(fmt::format("/proc/{}/fd", child_.id()), error);
  return static_cast<size_t>(std::distance(begin(files), end(files)));
}

double TestedServer::resident_mib() const {
  std::ifstream status(fmt::format("/proc/{}/status", child_.id()));
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("VmRSS:")) return std::stod(line.substr(6)) / 1024.0;
  return 0;
}

}  // namespace sol::load
