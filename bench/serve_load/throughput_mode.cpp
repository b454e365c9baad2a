// Tokens per second of many dense streams at a time against one.
#include <fmt/format.h>

#include <algorithm>
#include <thread>

#include "serve_load/answer_check.h"
#include "serve_load/modes.h"
#include "serve_load/workload.h"

namespace sol::load {
namespace {

constexpr double goal_factor = 4;

struct Rates {
  double whole = 0;   // tokens by the time from the first request to the last answer
  double steady = 0;  // while all streams run
};

Rates measure(const TestedServer& server, Report& report, int streams, int tokens, uint64_t seed) {
  const Workload workload(server);
  std::vector<Answer> answers(static_cast<size_t>(streams));
  std::vector<double> sent(answers.size());
  const Stopwatch stopwatch;
  {
    std::vector<std::jthread> threads;
    for (size_t i = 0; i < answers.size(); ++i)
      threads.emplace_back([&, i] {
        Random random({.seed = seed, .block = i});
        const Request request = workload.dense_stream(random, tokens);
        sent[i] = stopwatch.seconds();
        answers[i] = send(server.port(), request, {.read_late = true});
        const auto faults = faults_of_answer(request, answers[i]);
        report.require("every stream is complete", faults.empty(),
                       faults.empty() ? "" : faults.front());
      });
  }
  const double seconds = stopwatch.seconds();
  double begun = 0, ended = seconds;
  for (size_t i = 0; i < answers.size(); ++i) {
    begun = std::max(begun, sent[i] + answers[i].first_event);
    ended = std::min(ended, sent[i] + answers[i].last_event);
  }
  // Streams run in step: in that time each got its share of its tokens.
  double steady = 0;
  for (const Answer& answer : answers)
    if (answer.last_event > answer.first_event)
      steady += (tokens - 1) / (answer.last_event - answer.first_event);
  return {streams * tokens / seconds, ended > begun ? steady : 0};
}

}  // namespace

void run_throughput(const Settings& settings, Report& report) {
  TestedServer server(settings);
  report.set("server", {{"arguments", server.arguments()}, {"model", server.model()}});
  const int tokens = std::min(settings.tokens, server.context() - 16);
  std::vector<double> one, many, factors, steady_one, steady_many, steady_factors;
  // The first turn finds memory that nobody has touched yet.
  measure(server, report, settings.clients, 8, settings.seed);
  for (int turn = 0; turn < settings.turns; ++turn) {
    const uint64_t seed = settings.seed + 2 * static_cast<uint64_t>(turn) + 1;
    const Rates alone = measure(server, report, 1, tokens, seed);
    const Rates together = measure(server, report, settings.clients, tokens, seed + 1);
    one.push_back(alone.whole);
    many.push_back(together.whole);
    factors.push_back(together.whole / alone.whole);
    steady_one.push_back(alone.steady);
    steady_many.push_back(together.steady);
    if (alone.steady > 0) steady_factors.push_back(together.steady / alone.steady);
  }
  const double factor = median_of(factors);
  report.add_text(
      fmt::format("dense streams of {} tokens, medians of {} turns\n{:<22}{:>12}{:>12}{:>10}\n"
                  "{:<22}{:>12.1f}{:>12.1f}{:>9.2f}x\n{:<22}{:>12.1f}{:>12.1f}{:>9.2f}x\n",
                  tokens, settings.turns, "tokens/s", "1", settings.clients, "factor",
                  "whole requests", median_of(one), median_of(many), factor, "while decoding",
                  median_of(steady_one), median_of(steady_many), median_of(steady_factors)));
  report.goal(fmt::format("{} dense streams: 4 times the tokens/s of one", settings.clients),
              factor >= goal_factor, fmt::format("{:.2f} times", factor));
  report.set("throughput", {{"tokens", tokens},
                            {"streams", settings.clients},
                            {"one", one},
                            {"many", many},
                            {"factors", factors},
                            {"decoding_one", steady_one},
                            {"decoding_many", steady_many},
                            {"decoding_factors", steady_factors}});
  server.terminate();
  report.require("the server ends with status 0 after SIGTERM", server.wait() == 0);
}

}  // namespace sol::load
