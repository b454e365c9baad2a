#include "serve_load/population.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <mutex>
#include <numeric>
#include <thread>

#include "serve_load/answer_check.h"

namespace sol::load {
namespace {

std::vector<double> positive(const std::vector<ServedRequest>& all, double ServedRequest::*member) {
  std::vector<double> values;
  for (const ServedRequest& served : all)
    if (served.*member > 0) values.push_back(served.*member);
  return values;
}

}  // namespace

ServedRequest take_down(const Request& request, const Answer& answer) {
  ServedRequest served;
  served.kind = request.kind;
  for (const ChoiceAnswer& choice : answer.choices) {
    served.tokens += choice.sol["steps"].get<int>();
    ++served.sequences;
    served.ends.push_back(choice.sol);
  }
  if (answer.choices.size() == 1 && served.tokens > 1) {
    served.server_token_ms = answer.choices[0].sol["ms_per_token"].get<double>();
    if (request.streamed())
      served.token_ms = 1e3 * (answer.last_event - answer.first_event) / (served.tokens - 1);
  }
  if (request.streamed()) served.first_token_ms = 1e3 * answer.first_event;
  return served;
}

int64_t Population::tokens() const {
  return std::accumulate(served.begin(), served.end(), int64_t{0},
                         [](int64_t sum, const ServedRequest& s) { return sum + s.tokens; });
}

std::string Population::header() {
  return fmt::format("{:<42}{:>9}{:>8}{:>10}{:>10}   {:<26}{:<26}\n", "", "requests", "refused",
                     "tokens", "tokens/s", "first token ms 50/90/99", "ms/token 50/90/99");
}

std::string Population::line(const std::string& name) const {
  const auto three = [](const std::vector<double>& values) {
    return fmt::format("{:.1f} / {:.1f} / {:.1f} ", quantile_of(values, 0.5),
                       quantile_of(values, 0.9), quantile_of(values, 0.99));
  };
  return fmt::format("{:<42}{:>9}{:>8}{:>10}{:>10.1f}   {:<26}{:<26}\n", name, served.size(),
                     refused, tokens(), static_cast<double>(tokens()) / seconds,
                     three(positive(served, &ServedRequest::first_token_ms)),
                     three(positive(served, &ServedRequest::server_token_ms)));
}

Json Population::to_json() const {
  const auto quantiles = [](const std::vector<double>& values) {
    return Json{{"p50", quantile_of(values, 0.5)},
                {"p90", quantile_of(values, 0.9)},
                {"p99", quantile_of(values, 0.99)}};
  };
  return {{"seconds", seconds},
          {"requests", served.size()},
          {"refused", refused},
          {"tokens", tokens()},
          {"tokens_per_second", static_cast<double>(tokens()) / seconds},
          {"first_token_ms", quantiles(positive(served, &ServedRequest::first_token_ms))},
          {"ms_per_token", quantiles(positive(served, &ServedRequest::server_token_ms))},
          {"client_ms_per_token", quantiles(positive(served, &ServedRequest::token_ms))}};
}

Population run_population(const TestedServer& server, const Workload& workload, Report& report,
                          int clients, double seconds, uint64_t seed, std::stop_token stop) {
  Population population;
  std::mutex mutex;
  const Stopwatch stopwatch;
  const auto run_client = [&](int client) {
    for (uint32_t i = 0; stopwatch.seconds() < seconds && !stop.stop_requested(); ++i) {
      Random random({.seed = seed, .block = static_cast<uint64_t>(client), .step = i});
      const Request request = workload.draw(random);
      const Answer answer = send(server.port(), request);
      if (answer.status == 429) {
        const auto faults = faults_of_error(429, answer.error, answer.retry_after);
        report.require("a refusal says when to come back", faults.empty(),
                       faults.empty() ? "" : faults.front());
        {
          const std::lock_guard lock(mutex);
          ++population.refused;
        }
        std::this_thread::sleep_for(std::chrono::milliseconds{200});
        continue;
      }
      const auto faults =
          answer.complete()
              ? faults_of_answer(request, answer)
              : std::vector{fmt::format("status {} {} {} after {:.2f} s", answer.status,
                                        answer.failure, to_text(answer.error), answer.seconds)};
      report.require("every good request is answered completely", faults.empty(),
                     faults.empty() ? "" : faults.front() + ": " + to_text(request.body));
      if (!faults.empty()) continue;
      const std::lock_guard lock(mutex);
      population.served.push_back(take_down(request, answer));
    }
  };
  {
    std::vector<std::jthread> threads;
    for (int client = 0; client < clients; ++client)
      threads.emplace_back([&run_client, client] { run_client(client); });
  }
  population.seconds = stopwatch.seconds();
  return population;
}

}  // namespace sol::load
