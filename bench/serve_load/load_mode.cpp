// A minute of everything: one client, many, many beside hostile ones, twice; then the end.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "serve_load/answer_check.h"
#include "serve_load/budgets.h"
#include "serve_load/hostile_clients.h"
#include "serve_load/leak_check.h"
#include "serve_load/modes.h"
#include "serve_load/population.h"

namespace sol::load {
namespace {

constexpr double time_tolerance = 0.1;

// Under load other requests decide what is possible: the answers say what was. The goal is judged
// by the mode "latency", where nobody else is served.
void tell_times(const std::vector<ServedRequest>& all, Report& report) {
  Share met;
  for (const ServedRequest& served : all)
    for (const Json& end : served.ends) {
      if (served.kind != "time" || end["steps"].get<int>() < shortest_judged) continue;
      const Json& latency = end["latency"];
      const double target = latency["target_ms"].get<double>();
      if (target < latency["fastest_ms"].get<double>() ||
          target > latency["dense_ms"].get<double>())
        continue;
      met.add(std::abs(latency["measured_ms"].get<double>() / target - 1) <= time_tolerance);
    }
  report.add_text(fmt::format(
      "ms_per_token within 10 %, of the targets that the answers call attainable under this load: "
      "{}\n",
      met.text()));
  report.set("times_under_load", met.to_json());
}

// Streams that run when the server is told to end are completed, new requests are refused, and it
// ends with status 0.
void check_shutdown(TestedServer& server, Report& report, uint64_t seed) {
  const int streams = std::min(4, server.settings().batch);
  const Workload workload(server);
  std::atomic<int> begun{0};
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < streams; ++i)
      threads.emplace_back([&, i] {
        Random random({.seed = seed, .block = 99, .step = static_cast<uint32_t>(i)});
        const Request request = workload.dense_stream(random, std::min(384, server.context() / 2));
        ClientHooks hooks;
        hooks.on_piece = [&, first = true](const Answer&) mutable {
          if (std::exchange(first, false)) ++begun;
          return true;
        };
        const Answer answer = send(server.port(), request, hooks);
        const auto faults = faults_of_answer(request, answer);
        report.require("streams that run at SIGTERM are completed", faults.empty(),
                       faults.empty() ? "" : faults.front() + " " + to_text(answer.error));
      });
    const Stopwatch stopwatch;
    while (begun < streams && stopwatch.seconds() < 60)
      std::this_thread::sleep_for(std::chrono::milliseconds{2});
    server.terminate();
    // Until it has seen the signal it goes on as before; once it has ended nobody answers.
    for (int status = 200; status == 200;) status = fetch(server.port(), "/health").status;
    Random random({.seed = seed, .block = 100});
    const Answer late = send(server.port(), workload.dense_stream(random, 4));
    report.require(
        "after SIGTERM new requests are refused",
        late.status == 503 ? faults_of_error(503, late.error, 0).empty() : late.status == 0,
        fmt::format("status {}", late.status));
  }
  const int status = server.wait();
  report.require("the server ends with status 0 after SIGTERM", status == 0,
                 fmt::format("status {}", status));
}

}  // namespace

void run_load(const Settings& settings, Report& report) {
  TestedServer server(settings);
  report.set("server", {{"arguments", server.arguments()}, {"model", server.model()}});
  const Workload workload(server);
  LeakCheck leaks(server);
  std::vector<ServedRequest> all;
  Json rows = Json::array();
  report.add_text(Population::header());
  const auto add = [&](const std::string& name, Population population) {
    report.add_text(population.line(name));
    rows.push_back(population.to_json());
    rows.back()["name"] = name;
    rows.back()["server_resident_mib"] = server.resident_mib();
    std::ranges::move(population.served, std::back_inserter(all));
  };
  const std::string many = fmt::format("{} clients", settings.clients);
  add("1 client", run_population(server, workload, report, 1, settings.seconds / 6, settings.seed));
  add(many, run_population(server, workload, report, settings.clients, settings.seconds / 6,
                           settings.seed + 1));
  leaks.run(report, "after ordinary clients");
  for (const int round : {1, 2}) {
    const double seconds = settings.seconds / 3;
    const uint64_t seed = settings.seed + 10 * static_cast<uint64_t>(round);
    std::jthread hostile([&] { run_hostile_clients(server, report, seconds, seed); });
    Population population =
        run_population(server, workload, report, settings.clients, seconds, seed + 1);
    hostile.join();
    report.require("the server lives", server.alive(), "it has ended");
    add(fmt::format("{} beside hostile ones, round {}", many, round), std::move(population));
    leaks.run(report, fmt::format("after round {}", round));
  }
  check_cancellation(server, report);
  leaks.run(report, "at the end");
  report.add_text(
      fmt::format("resident memory of the server at the end: {:.0f} MiB\n", server.resident_mib()));
  judge_budgets(all, report);
  tell_times(all, report);
  check_shutdown(server, report, settings.seed);
  report.set("rows", std::move(rows));
}

}  // namespace sol::load
