#include "serve_load/hostile_clients.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "serve_load/answer_check.h"
#include "serve_load/bad_requests.h"
#include "serve_load/raw_connection.h"
#include "serve_load/workload.h"

namespace sol::load {
namespace {

using namespace std::chrono_literals;

class HostileClients {
 public:
  HostileClients(TestedServer& server, Report& report, double seconds, uint64_t seed)
      : server_(server), report_(report), workload_(server), seconds_(seconds), seed_(seed) {}

  void run() {
    std::vector<std::jthread> threads;
    for (const auto client :
         {&HostileClients::read_slowly, &HostileClients::read_slowly, &HostileClients::never_read,
          &HostileClients::disconnect_from_streams, &HostileClients::disconnect_from_prompts,
          &HostileClients::send_halves, &HostileClients::send_slowly, &HostileClients::send_wrong,
          &HostileClients::flood, &HostileClients::look_after})
      threads.emplace_back([this, client, i = ++threads_] {
        Random random({.seed = seed_, .block = i});
        try {
          (this->*client)(random);
        } catch (const std::exception& error) {
          report_.require("the server takes connections and answers /metrics", false, error.what());
        }
      });
  }

 private:
  bool over() const { return since_.seconds() > seconds_; }
  void pause(double seconds) const {
    std::this_thread::sleep_for(std::chrono::duration<double>(
        std::clamp(seconds, 0.0, std::max(0.0, seconds_ - since_.seconds()))));
  }

  static std::string message(const Request& request) {
    const std::string body = to_text(request.body);
    return fmt::format(
        "POST {} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        "Content-Length: {}\r\n\r\n{}",
        request.path, body.size(), body);
  }

  // A stream with much in every event, so that the sockets' buffers fill.
  Request wordy_stream(Random& random, int tokens) const {
    Request request = workload_.dense_stream(random, tokens);
    request.body["logprobs"] = 20;
    request.body["sol"] = {{"actions", true}};
    return request;
  }

  // A complete answer or a documented refusal.
  void check(const std::string& who, const Request& request, const Answer& answer) {
    const auto faults = answer.status == 200
                            ? faults_of_answer(request, answer)
                            : faults_of_error(answer.status, answer.error, answer.retry_after);
    const bool good = faults.empty() && (answer.status == 200 || answer.status == 429);
    report_.require(who + " get complete answers or are told to come back", good,
                    good ? ""
                         : fmt::format("status {} {}: {}; {}", answer.status, answer.failure,
                                       faults.empty() ? to_text(answer.error) : faults.front(),
                                       to_text(request.body)));
  }

  void read_slowly(Random& random) {
    while (!over()) {
      const Request request = wordy_stream(random, 48);
      ClientHooks hooks;
      hooks.receive_buffer = 4096;
      hooks.on_piece = [&](const Answer&) {
        std::this_thread::sleep_for(over() ? 0ms : 40ms);
        return true;
      };
      check("slow readers", request, send(server_.port(), request, hooks));
    }
  }

  void never_read(Random& random) {
    RawConnection connection(server_.port(), 4096);
    connection.send(message(wordy_stream(random, std::min(512, server_.context() / 2))));
    pause(seconds_);
  }

  void disconnect_from_streams(Random& random) {
    while (!over()) {
      const Request request = workload_.dense_stream(random, 128);
      const auto enough = static_cast<int>(1 + random.below(40));
      ClientHooks hooks;
      hooks.on_piece = [&](const Answer& answer) { return answer.events < enough; };
      const Answer answer = send(server_.port(), request, hooks);
      if (!answer.disconnected) check("those who disconnect too late", request, answer);
      pause(0.02);
    }
  }

  void disconnect_from_prompts(Random& random) {
    while (!over()) {
      Request request = workload_.dense_stream(random, 64);
      request.body["prompt"] = workload_.ids(random, server_.context() - 64);
      if (random.below(2) == 0) {
        request.body.erase("stream");
        request.body.erase("stream_options");
      }
      RawConnection connection(server_.port());
      connection.send(message(request));
      pause(0.2 * random.uniform_double());
      if (random.below(2) == 0) connection.reset();
    }
  }

  // Cut off anywhere, and left at once, reset, or kept open until the server gives up.
  void send_halves(Random& random) {
    while (!over()) {
      const std::string whole = message(workload_.dense_stream(random, 8));
      const std::string half =
          whole.substr(0, 1 + random.below(static_cast<uint32_t>(whole.size() - 1)));
      RawConnection connection(server_.port());
      connection.send(half);
      const uint32_t ending = random.below(8);
      if (ending == 0) expect_end(connection, "half of a request");
      if (ending % 2 == 1) connection.reset();
      pause(0.02);
    }
  }

  void expect_end(RawConnection& connection, const std::string& what) {
    // Time for a busy machine; without a limit it would never come.
    const double most = server_.settings().request_seconds + 15;
    const Stopwatch stopwatch;
    std::string text;
    const bool ended =
        connection.read_to_end(text, std::chrono::milliseconds(static_cast<int64_t>(1e3 * most)));
    report_.require("requests that are never whole are given up", ended,
                    fmt::format("{} is waited for after {:.1f} s", what, stopwatch.seconds()));
  }

  // A byte now and then does not keep a connection.
  void send_slowly(Random& random) {
    const std::string whole = message(workload_.dense_stream(random, 8));
    while (!over()) {
      RawConnection connection(server_.port());
      const Stopwatch stopwatch;
      for (size_t i = 0;
           i < whole.size() && stopwatch.seconds() < server_.settings().request_seconds; ++i) {
        connection.send(whole.substr(i, 1));
        std::this_thread::sleep_for(100ms);
        if (connection.wait_for_answer(0ms)) break;
      }
      expect_end(connection, "a request sent byte by byte");
    }
  }

  void send_wrong(Random&) {
    bool large = true;
    do {
      send_bad_requests(server_, report_, large);
      large = false;
      pause(0.5);
    } while (!over());
  }

  // Three times what fits, at once, twice.
  void flood(Random& random) {
    const int capacity = server_.settings().batch + server_.settings().queue;
    const int connections = std::clamp(3 * capacity, 8, 60);
    const int each = std::min((3 * capacity + connections - 1) / connections, capacity);
    for (int wave = 0; wave < 2; ++wave) {
      pause(seconds_ / 3);
      std::atomic<int> refused{0};
      {
        std::vector<std::jthread> threads;
        for (int i = 0; i < connections; ++i) {
          Request request = workload_.dense_stream(random, 32);
          request.body["n"] = each;
          threads.emplace_back([&, request] {
            const Answer answer = send(server_.port(), request);
            if (answer.status == 429) ++refused;
            check("a flood's clients", request, answer);
          });
        }
      }
      report_.require("a flood beyond the queue is refused with 429", refused > 0,
                      fmt::format("{} requests of {} sequences: none was", connections, each));
    }
  }

  // The server answers others meanwhile, and keeps within its limits.
  void look_after(Random&) {
    const Settings& settings = server_.settings();
    while (!over()) {
      report_.require("/health answers 200 under load",
                      fetch(server_.port(), "/health").status == 200, "it did not");
      const auto metrics = server_.metrics();
      const double running = metrics.at("sol_running_sequences");
      const double waiting = metrics.at("sol_queue_sequences");
      const double tokens =
          metrics.at("sol_cache_reserved_tokens") + metrics.at("sol_cache_prefix_tokens");
      report_.require(
          "sequences and cache stay within the server's limits",
          running <= settings.batch && waiting <= settings.batch + settings.queue &&
              tokens <= metrics.at("sol_cache_limit_tokens"),
          fmt::format("{} running, {} waiting, {} tokens in the cache", running, waiting, tokens));
      pause(0.2);
    }
  }

  TestedServer& server_;
  Report& report_;
  const Workload workload_;
  const double seconds_;
  const uint64_t seed_;
  uint32_t threads_ = 0;
  Stopwatch since_;
};

}  // namespace

void run_hostile_clients(TestedServer& server, Report& report, double seconds, uint64_t seed) {
  HostileClients(server, report, seconds, seed).run();
}

}  // namespace sol::load
