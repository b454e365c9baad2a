// The same requests alone, alone again and under load: with --deterministic their answers are
// equal; without it the share that differ is told.
#include <fmt/format.h>

#include <algorithm>
#include <thread>

#include "serve_load/answer_check.h"
#include "serve_load/modes.h"
#include "serve_load/population.h"

namespace sol::load {
namespace {

// What must not depend on anybody else: all but names, times and what the cache held.
Json essence(const Answer& answer) {
  Json all = Json::array();
  for (const ChoiceAnswer& choice : answer.choices)
    all.push_back({{"text", choice.text},
                   {"finish_reason", choice.finish_reason},
                   {"tokens", choice.tokens},
                   {"actions", choice.actions},
                   {"realised", choice.sol["realised"]},
                   {"steps", choice.sol["steps"]}});
  return all;
}

// Where two answers part, for the report.
std::string difference(const Json& a, const Json& b) {
  for (size_t choice = 0; choice < std::min(a.size(), b.size()); ++choice) {
    const Json &x = a[choice]["actions"], &y = b[choice]["actions"];
    for (size_t i = 0; i < std::min(x.size(), y.size()); ++i)
      if (x[i] != y[i])
        return fmt::format("choice {}, token {}: {} and {}", choice, i, to_text(x[i]),
                           to_text(y[i]));
  }
  return to_text(a) + " and " + to_text(b);
}

class Repetition {
 public:
  Repetition(const TestedServer& server, Report& report, const Settings& settings)
      : server_(server), report_(report), workload_(server) {
    for (int i = 0; i < settings.requests; ++i) {
      Random random({.seed = settings.seed, .block = static_cast<uint64_t>(i)});
      Request request = workload_.draw(random, false);
      request.body["sol"]["actions"] = true;
      requests_.push_back(std::move(request));
    }
    first_ = ask_all();
  }

  // How many answers differ from the first ones.
  int differing(const std::string& when, bool must_equal) {
    const std::vector<Json> again = ask_all();
    int different = 0;
    for (size_t i = 0; i < again.size(); ++i) {
      const bool equal = again[i] == first_[i];
      if (!equal) ++different;
      if (must_equal)
        report_.require("with --deterministic, answers do not depend on other requests", equal,
                        equal ? ""
                              : fmt::format("{}: {} for {}", when, difference(first_[i], again[i]),
                                            to_text(requests_[i].body)));
    }
    report_.add_text(fmt::format("{:<28}{:>4} of {} answers differ ({:.1f} %)\n", when, different,
                                 again.size(),
                                 100.0 * different / static_cast<double>(again.size())));
    return different;
  }

 private:
  std::vector<Json> ask_all() const {
    std::vector<Json> all;
    for (const Request& request : requests_) {
      Answer answer = send(server_.port(), request);
      // The queue may be full for the moment.
      for (const Stopwatch waiting; answer.status == 429 && waiting.seconds() < 60;) {
        std::this_thread::sleep_for(std::chrono::milliseconds{100});
        answer = send(server_.port(), request);
      }
      const auto faults = answer.complete() ? faults_of_answer(request, answer)
                                            : std::vector<std::string>{to_text(answer.error)};
      report_.require("every good request is answered completely", faults.empty(),
                      faults.empty() ? "" : faults.front() + ": " + to_text(request.body));
      all.push_back(faults.empty() ? essence(answer) : Json());
    }
    return all;
  }

  const TestedServer& server_;
  Report& report_;
  const Workload workload_;
  std::vector<Request> requests_;
  std::vector<Json> first_;
};

}  // namespace

void run_repeat(const Settings& settings, Report& report) {
  TestedServer server(settings);
  report.set("server", {{"arguments", server.arguments()}, {"model", server.model()}});
  report.add_text(
      fmt::format("{} requests with seeds and budgets, compared with their first run{}\n",
                  settings.requests, settings.deterministic ? ", --deterministic" : ""));
  Repetition repetition(server, report, settings);
  const int alone = repetition.differing("alone, again", settings.deterministic);
  int loaded = 0;
  {
    std::jthread load([&](std::stop_token stop) {
      const Workload workload(server);
      run_population(server, workload, report, settings.clients, 3600, settings.seed + 1, stop);
    });
    loaded = repetition.differing(fmt::format("beside {} clients", settings.clients),
                                  settings.deterministic);
  }
  report.set("repeat", {{"deterministic", settings.deterministic},
                        {"requests", settings.requests},
                        {"differ_alone", alone},
                        {"differ_under_load", loaded}});
  server.terminate();
  report.require("the server ends with status 0 after SIGTERM", server.wait() == 0);
}

}  // namespace sol::load
