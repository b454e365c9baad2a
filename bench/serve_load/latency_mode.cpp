// Whether a time per token that lies between the fastest and the dense one is met, one request
// after another.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "serve_load/answer_check.h"
#include "serve_load/modes.h"
#include "serve_load/workload.h"

namespace sol::load {
namespace {

constexpr double tolerance = 0.1, goal_share = 0.9;

}  // namespace

void run_latency(const Settings& settings, Report& report) {
  TestedServer server(settings);
  report.set("server", {{"arguments", server.arguments()}, {"model", server.model()}});
  const Json& range = server.dial()["latency"];
  if (range.is_null()) {
    report.require("the server takes a time per token", false, "it was started without one");
    return;
  }
  const double fastest = range["fastest_ms"].get<double>(), dense = range["dense_ms"].get<double>();
  const int tokens = std::min(settings.tokens, server.context() - 64);
  const Workload workload(server);
  report.add_text(
      fmt::format("answers of {} tokens; the server says {:.3f} ms at its fastest, "
                  "{:.3f} ms densely\n{:>10}{:>10}{:>10}  {}\n",
                  tokens, fastest, dense, "target", "measured", "off by", ""));
  if (!(fastest < dense)) {
    report.goal("ms_per_token within 10 % for 90 %", false,
                "no target lies between the server's fastest and dense times");
  }
  int met = 0, of = 0;
  Json rows = Json::array();
  for (int i = 0; i < settings.requests && fastest < dense; ++i) {
    Random random({.seed = settings.seed, .block = static_cast<uint64_t>(i)});
    const double place = (i + 0.5) / settings.requests;
    const double target = fastest + place * (dense - fastest);
    Request request = workload.dense_stream(random, tokens);
    request.body["sol"] = {{"ms_per_token", target}};
    const Answer answer = send(server.port(), request, {.read_late = true});
    const auto faults = faults_of_answer(request, answer);
    report.require("every request is answered completely", faults.empty(),
                   faults.empty() ? "" : faults.front());
    if (!faults.empty()) continue;
    const double measured = answer.choices[0].sol["ms_per_token"].get<double>();
    const double seen = 1e3 * (answer.last_event - answer.first_event) / (tokens - 1);
    const double off = measured / target - 1;
    ++of;
    if (std::abs(off) <= tolerance) ++met;
    report.add_text(fmt::format("{:>10.3f}{:>10.3f}{:>9.1f}%  realised {}\n", target, measured,
                                100 * off, to_text(answer.choices[0].sol["realised"])));
    rows.push_back({{"target_ms", target},
                    {"measured_ms", measured},
                    {"client_ms", seen},
                    {"sol", answer.choices[0].sol}});
  }
  if (of > 0)
    report.goal("ms_per_token within 10 % for 90 %", met >= goal_share * of,
                fmt::format("{:.1f} % of {}", 100.0 * met / of, of));
  report.set("latency", {{"fastest_ms", fastest}, {"dense_ms", dense}, {"rows", std::move(rows)}});
  server.terminate();
  report.require("the server ends with status 0 after SIGTERM", server.wait() == 0);
}

}  // namespace sol::load
