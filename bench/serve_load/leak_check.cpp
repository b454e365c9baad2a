#include "serve_load/leak_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <thread>

#include "serve_load/raw_connection.h"
#include "serve_load/workload.h"

namespace sol::load {
namespace {

using namespace std::chrono_literals;

// The server looks after its clients several times a second; a busy machine is slower.
constexpr auto idle_patience = 30s;
// A kept beginning has at least 16 tokens, and a block of the cache 32: n tokens fill at most n /
// 16 blocks, however they are divided.
constexpr double tokens_per_block_at_least = 16;
constexpr int64_t reservation_grain = 64;

// Polls until `reached`.
template <typename Reached>
bool wait_for(const Reached& reached) {
  const auto deadline = std::chrono::steady_clock::now() + idle_patience;
  while (!reached()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(50ms);
  }
  return true;
}

bool nothing_runs(const std::map<std::string, double>& metrics) {
  return metrics.at("sol_running_sequences") == 0 && metrics.at("sol_queue_sequences") == 0 &&
         metrics.at("sol_cache_reserved_tokens") == 0;
}

}  // namespace

LeakCheck::LeakCheck(TestedServer& server) : server_(server), files_(server.open_files()) {}

bool LeakCheck::wait_until_idle(Report& report, const std::string& when) {
  const bool idle = wait_for([&] { return nothing_runs(server_.metrics()); });
  const auto metrics = server_.metrics();
  report.require("nothing runs, waits or is reserved once all clients have gone", idle,
                 fmt::format("{}: {} running, {} waiting, {} tokens reserved", when,
                             metrics.at("sol_running_sequences"), metrics.at("sol_queue_sequences"),
                             metrics.at("sol_cache_reserved_tokens")));
  return idle;
}

void LeakCheck::check_blocks(Report& report, const std::string& what, double most_kept) {
  double blocks = 0, kept = 0;
  const bool explained = wait_for([&] {
    const auto metrics = server_.metrics();
    blocks = metrics.at("sol_cache_blocks");
    kept = metrics.at("sol_cache_prefix_tokens");
    return kept <= most_kept && blocks <= kept / tokens_per_block_at_least;
  });
  report.require("no cache block is left that no kept beginning explains", explained,
                 fmt::format("{}: {} blocks with {} tokens kept", what, blocks, kept));
}

double LeakCheck::push_out_prefixes() {
  const auto limit = static_cast<int64_t>(server_.metrics().at("sol_cache_limit_tokens"));
  // One token less than the grain allows: reservations are rounded up to the next whole one.
  const int64_t batch = server_.settings().batch;
  const int64_t each =
      std::min<int64_t>(limit / batch, server_.context()) / reservation_grain * reservation_grain;
  Random random({.seed = 2});
  Request request = Workload(server_).dense_stream(random, static_cast<int>(each) - 9);
  request.body["prompt"] = Workload(server_).ids(random, 8);
  request.body["n"] = batch;
  ClientHooks hooks;
  // Once all have begun, all of the cache is theirs.
  hooks.on_piece = [&](const Answer& answer) {
    return answer.choices.size() < static_cast<size_t>(batch) ||
           std::ranges::any_of(answer.choices,
                               [](const ChoiceAnswer& c) { return c.text.empty(); });
  };
  send(server_.port(), request, hooks);
  return static_cast<double>(limit - batch * each);
}

void LeakCheck::run(Report& report, const std::string& when) {
  if (!wait_until_idle(report, when)) return;
  const double limit = server_.metrics().at("sol_cache_limit_tokens");
  check_blocks(report, when, limit);
  const double left = push_out_prefixes();
  if (!wait_until_idle(report, when + ", after pushing out what is kept")) return;
  check_blocks(report, when + ", after pushing out what is kept", left);
  const bool closed = wait_for([&] { return server_.open_files() <= files_; });
  report.require(
      "every connection is closed once all clients have gone", closed,
      fmt::format("{}: {} open files instead of {}", when, server_.open_files(), files_));
}

void check_cancellation(TestedServer& server, Report& report) {
  const auto generated = [&] { return server.metrics().at("sol_generated_tokens_total"); };
  Random random({.seed = 3});
  const Workload workload(server);
  const int prompt = server.context() / 2, answer = server.context() / 2 - 8;
  for (const bool streamed : {false, true}) {
    const double before = generated();
    Request request = workload.dense_stream(random, answer);
    request.body["prompt"] = workload.ids(random, prompt);
    if (!streamed) {
      request.body.erase("stream");
      request.body.erase("stream_options");
    }
    const std::string body = to_text(request.body);
    {
      RawConnection connection(server.port());
      connection.send(
          "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: "
          "application/json\r\nContent-Length: " +
          std::to_string(body.size()) + "\r\n\r\n" + body);
      // Into its prompt.
      wait_for([&] { return server.metrics().at("sol_running_sequences") > 0; });
    }
    const bool idle = wait_for([&] { return nothing_runs(server.metrics()); });
    const double more = generated() - before;
    report.require("a client that goes away early ends its request", idle && more < 0.5 * answer,
                   fmt::format("{} of {} tokens generated for nobody ({})", more, answer,
                               streamed ? "streamed" : "not streamed"));
  }
}

}  // namespace sol::load
