// Many requests with budgets, as many at a time as there are clients: what is realised.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <thread>

#include "serve_load/answer_check.h"
#include "serve_load/budgets.h"
#include "serve_load/modes.h"

namespace sol::load {
namespace {

Request budget_request(const TestedServer& server, const Workload& workload, Random& random) {
  Request request;
  do request = workload.draw(random, false);
  while (request.kind != "budget" && request.kind != "axes");
  for (const char* name : {"n", "stop", "echo"}) request.body.erase(name);
  request.body["ignore_eos"] = true;
  const int longest = std::clamp(server.context() / 4, shortest_judged, 3 * shortest_judged);
  request.body["max_tokens"] =
      shortest_judged +
      static_cast<int>(random.below(static_cast<uint32_t>(longest - shortest_judged + 1)));
  return request;
}

}  // namespace

void run_budgets(const Settings& settings, Report& report) {
  TestedServer server(settings);
  report.set("server", {{"arguments", server.arguments()}, {"model", server.model()}});
  const Workload workload(server);
  std::vector<ServedRequest> all;
  std::mutex mutex;
  std::atomic<int> next{0};
  {
    std::vector<std::jthread> threads;
    for (int client = 0; client < settings.clients; ++client)
      threads.emplace_back([&] {
        for (int i; (i = next++) < settings.requests;) {
          Random random({.seed = settings.seed, .block = static_cast<uint64_t>(i)});
          const Request request = budget_request(server, workload, random);
          const Answer answer = send(server.port(), request);
          const auto faults = faults_of_answer(request, answer);
          report.require("every request is answered completely", faults.empty(),
                         faults.empty() ? "" : faults.front() + ": " + to_text(request.body));
          if (!faults.empty()) continue;
          const std::lock_guard lock(mutex);
          all.push_back(take_down(request, answer));
        }
      });
  }
  judge_budgets(all, report);
  server.terminate();
  report.require("the server ends with status 0 after SIGTERM", server.wait() == 0);
}

}  // namespace sol::load
