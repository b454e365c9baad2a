// What the server adds to a token's time: one request, streamed and not, against `sol generate`
// with the same prompt, budget, seed and length.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "base/fail.h"
#include "serve_load/answer_check.h"
#include "serve_load/modes.h"
#include "serve_load/workload.h"

namespace sol::load {
namespace {

constexpr double goal_microseconds = 100, goal_percent = 3;

struct Case {
  std::string name;
  double budget = 0;  // 0: dense
};

class Comparison {
 public:
  Comparison(const Settings& settings, const TestedServer& server, Report& report, Case which)
      : settings_(settings), server_(server), report_(report), case_(std::move(which)) {
    Random random({.seed = settings.seed});
    prompt_ = Workload(server).words(random, 64);
    tokens_ = std::min(settings.tokens, server.context() - 256);
  }

  void run() {
    ask(false, 1);  // computes the prompt, which later requests share
    for (int turn = 0; turn < settings_.turns; ++turn) {
      // The time of a request less that of one for a single token: what its other tokens cost.
      const auto per_token = [&](bool stream) {
        const double one = ask(stream, 1);
        return 1e3 * (ask(stream, tokens_) - one) / (tokens_ - 1);
      };
      // Turns alternate in order, so that a drift of the machine favours nobody.
      if (turn % 2 == 0) generated_.push_back(generate());
      plain_.push_back(per_token(false));
      streamed_.push_back(per_token(true));
      if (turn % 2 == 1) generated_.push_back(generate());
    }
  }

  Json tell() {
    report_.add_text(
        fmt::format("{:<30}{:>12.4f}\n", case_.name + ", sol generate", median_of(generated_)));
    tell("not streamed", plain_);
    tell("streamed", streamed_);
    report_.add_text(fmt::format("  the same text in {} of {} turns\n", equal_, compared_));
    return {{"case", case_.name},         {"tokens", tokens_},      {"generate_ms", generated_},
            {"plain_ms", plain_},         {"stream_ms", streamed_}, {"equal_texts", equal_},
            {"compared_texts", compared_}};
  }

 private:
  // Differences within a turn: the machine's speed drifts.
  void tell(const std::string& how, const std::vector<double>& times) {
    std::vector<double> more, percent;
    for (size_t i = 0; i < times.size(); ++i) {
      more.push_back(1e3 * (times[i] - generated_[i]));
      percent.push_back(100 * (times[i] / generated_[i] - 1));
    }
    const std::string name = fmt::format("{}, {}", case_.name, how);
    report_.add_text(fmt::format("{:<30}{:>12.4f}{:>11.1f} us{:>8.1f} %\n", name, median_of(times),
                                 median_of(more), median_of(percent)));
    report_.goal("overhead under 100 us per token, " + name, median_of(more) < goal_microseconds,
                 fmt::format("{:.1f} us", median_of(more)));
    report_.goal("overhead under 3 % per token, " + name, median_of(percent) < goal_percent,
                 fmt::format("{:.1f} %", median_of(percent)));
  }

  // Seconds from sending to the last byte.
  double ask(bool stream, int tokens) {
    Request request;
    request.body = {{"prompt", prompt_},
                    {"max_tokens", tokens},
                    {"temperature", 0.8},
                    {"seed", settings_.seed},
                    {"ignore_eos", true}};
    if (stream) request.body["stream"] = true;
    if (case_.budget > 0) request.body["sol"] = {{"budget", case_.budget}};
    const Answer answer = send(server_.port(), request, {.read_late = true});
    const auto faults = faults_of_answer(request, answer);
    report_.require("every request is answered completely", faults.empty(),
                    faults.empty() ? "" : faults.front());
    if (tokens == tokens_ && !answer.choices.empty()) text_ = answer.choices[0].text;
    return answer.seconds;
  }

  // Milliseconds per token, as the program itself says.
  double generate() {
    std::vector<std::string> arguments{
        "generate", "-n",     std::to_string(tokens_),       "--ignore-end", "--temperature",
        "0.8",      "--seed", std::to_string(settings_.seed)};
    const auto add = [&](const char* name, const std::string& value) {
      arguments.insert(arguments.end(), {name, value});
    };
    if (!settings_.model.empty()) add("-m", settings_.model.string());
    if (settings_.deterministic) arguments.push_back("--deterministic");
    if (case_.budget > 0) {
      add("-c", settings_.controller.string());
      add("--budget", fmt::format("{}", case_.budget));
    }
    arguments.insert(arguments.end(), settings_.model_arguments.begin(),
                     settings_.model_arguments.end());
    arguments.push_back(prompt_);
    const Finished finished = run_to_end(settings_.sol, arguments);
    const size_t speed = finished.errors.find("\nspeed ");
    if (finished.status != 0 || speed == std::string::npos)
      fail("sol generate ended with status {}: {}", finished.status, finished.errors);
    if (!text_.empty()) {
      ++compared_;
      if (finished.output == text_ + "\n") ++equal_;
      if (settings_.deterministic)
        report_.require("with --deterministic, the server and sol generate give the same text",
                        finished.output == text_ + "\n", "they do not");
    }
    return 1e3 / std::strtod(finished.errors.c_str() + speed + 7, nullptr);
  }

  const Settings& settings_;
  const TestedServer& server_;
  Report& report_;
  const Case case_;
  std::string prompt_, text_;
  int tokens_ = 0;
  std::vector<double> generated_, plain_, streamed_;
  int equal_ = 0, compared_ = 0;
};

}  // namespace

void run_overhead(const Settings& settings, Report& report) {
  TestedServer server(settings);
  report.set("server", {{"arguments", server.arguments()}, {"model", server.model()}});
  std::vector<Case> cases{{"dense", 0}};
  if (!settings.controller.empty()) {
    const Json& range = server.dial()["budget"];
    const double budget = settings.budget > 0
                              ? settings.budget
                              : 0.5 * (range["low"].get<double>() + range["high"].get<double>());
    cases.push_back({fmt::format("budget {:.2f}", budget), budget});
  }
  report.add_text(fmt::format("one request at a time, medians of {} turns\n{:<30}{:>12}{:>14}\n",
                              settings.turns, "", "ms/token", "more"));
  Json rows = Json::array();
  for (const Case& which : cases) {
    Comparison comparison(settings, server, report, which);
    comparison.run();
    rows.push_back(comparison.tell());
  }
  report.set("overhead", std::move(rows));
  server.terminate();
  report.require("the server ends with status 0 after SIGTERM", server.wait() == 0);
}

}  // namespace sol::load
