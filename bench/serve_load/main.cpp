// A load test of `sol serve`, which it starts itself and talks to over the loopback address only.
// Everything is bounded: clients, requests, times.
//
//   serve_load [-m DIR] [-c DIR] [--mode MODE] [--seconds 60]
//              [--deterministic] [--json FILE] [-- more arguments of sol serve]
//
//   load        clients of all kinds for a minute: nothing breaks, nothing leaks, every answer is
//               complete or a clear error; rates and percentiles of many clients against one
//   throughput  tokens per second of 16 dense streams against one
//   budget      whether budgets that are asked for are realised
//   latency     whether a time per token that is asked for is met
//   repeat      whether answers depend on what else is served
//   overhead    time per token against `sol generate`
//
// Exits with 1 when something that must hold does not; goals are told (with --strict they count).
// -m takes any model directory; `sol convert --from shape` writes one with random weights in a
// published model's shape.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <thread>

#include "base/build_info.h"
#include "base/cpu.h"
#include "base/fail.h"
#include "base/file_io.h"
#include "serve_load/child_process.h"
#include "serve_load/modes.h"

namespace {

using namespace sol;
using namespace sol::load;

const std::map<std::string, void (*)(const Settings&, Report&)> modes{
    {"load", run_load},       {"throughput", run_throughput}, {"budget", run_budgets},
    {"latency", run_latency}, {"repeat", run_repeat},         {"overhead", run_overhead}};

// Where the build puts it: one folder above the benchmarks.
std::filesystem::path built_program() {
  std::error_code error;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", error);
  return self.parent_path().parent_path() / "sol";
}

std::string trimmed(std::string text) {
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

Json describe(const Settings& settings, const std::string& command) {
  double load[1] = {0};
  if (getloadavg(load, 1) != 1) load[0] = -1;
  return {{"version", build_version()},
          {"commit", build_commit()},
          {"command", command},
          {"program", trimmed(run_to_end(settings.sol, {"--version"}).output)},
          {"model", settings.model.string()},
          {"controller", settings.controller.string()},
          {"cpu", cpu_description()},
          {"processors", std::thread::hardware_concurrency()},
          {"load_average_before", load[0]},
          {"seed", settings.seed}};
}

void add_options(CLI::App& app, Settings& s) {
  const auto count = CLI::Range(1, 100000);
  app.add_option("--sol", s.sol, "The program (default: the one built beside this)")
      ->type_name("FILE");
  app.add_option("-m,--model", s.model, "Model directory (default: the program's own model)");
  app.add_option("-c,--controller", s.controller, "A trained controller");
  std::vector<std::string> names;
  for (const auto& [name, run] : modes) names.push_back(name);
  app.add_option("--mode", s.mode, "What to measure")
      ->check(CLI::IsMember(names))
      ->capture_default_str();
  app.add_option("--seconds", s.seconds, "Of the mode load, all phases together")
      ->check(CLI::Range(0.1, 3600.0))
      ->capture_default_str();
  app.add_option("--clients", s.clients, "At a time")->check(CLI::Range(1, 256));
  app.add_option("--batch", s.batch, "Of the server")->check(CLI::Range(1, 128));
  app.add_option("--queue", s.queue, "Of the server")->check(CLI::Range(0, 1000));
  app.add_option("--request-seconds", s.request_seconds, "Of the server")
      ->check(CLI::Range(0.1, 60.0));
  app.add_option("--tokens", s.tokens, "Of an answer whose rate is measured")
      ->check(CLI::Range(8, 100000))
      ->capture_default_str();
  app.add_option("--turns", s.turns, "Of throughput and overhead; medians are told")
      ->check(count)
      ->capture_default_str();
  app.add_option("--requests", s.requests, "Of budget, latency and repeat")
      ->check(count)
      ->capture_default_str();
  app.add_option("--budget", s.budget, "Of overhead (default: the middle of what is offered)")
      ->check(CLI::Range(0.0, 1.0));
  app.add_flag("--deterministic", s.deterministic, "For the program");
  app.add_flag("--strict", s.strict, "Missed goals are failures");
  app.add_option("--seed", s.seed, "Of the requests")->capture_default_str();
  for (const char* name : {"--threads", "--precision", "--weights"})
    app.add_option_function<std::string>(
        name,
        [&s, name](const std::string& value) {
          s.model_arguments.insert(s.model_arguments.end(), {name, value});
        },
        "For `sol serve` and `sol generate`");
  app.add_option("arguments", s.serve_arguments, "After --: more arguments of `sol serve`");
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"A load test of `sol serve`"};
  Settings settings;
  std::string json_file;
  add_options(app, settings);
  app.add_option("--json", json_file, "Also write the results there")->type_name("FILE");
  CLI11_PARSE(app, argc, argv);
  try {
    if (!json_file.empty()) ensure_writable_file(json_file);
    if (settings.sol.empty()) settings.sol = built_program();
    if (settings.clients > settings.batch + settings.queue)
      fail("--clients {}: a server with --batch {} and --queue {} refuses so many",
           settings.clients, settings.batch, settings.queue);
    std::string command;
    for (int i = 0; i < argc; ++i) command += (i > 0 ? " " : "") + std::string(argv[i]);
    Report report;
    report.set("run", describe(settings, command));
    report.set("mode", settings.mode);
    modes.at(settings.mode)(settings, report);
    std::printf("%s", report.text().c_str());
    if (!json_file.empty()) write_file_atomically(json_file, to_text(report.to_json(), 1) + "\n");
    return report.all_held() && (report.all_met() || !settings.strict) ? 0 : 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "serve_load: %s\n", error.what());
    return 1;
  }
}
