// A server of the shipped model within the test's own process.
#pragma once

#include <httplib.h>

#include <memory>
#include <string>
#include <thread>

#include "policy/policies.h"
#include "serving/http_server.h"
#include "support.h"

namespace sol::test {

// A table by which a dense token takes 10 ms at any length, half the channels save 3 ms, half the
// context nothing.
inline CostTable made_costs(int horizon = 16) {
  return CostTable(horizon, {0.1f, 0.5f},
                   {{64, 10.0, 8.0, {0.0, 0.0}}, {512, 10.0, 8.0, {0.0, 0.0}}}, {5.4, 3.0});
}

inline const char* made_chat_template() {
  return "{{ bos_token }}{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}"
         "{% if add_generation_prompt %}assistant: {% endif %}";
}

// Deterministic float32, so that no result depends on load or machine.
inline ServedModel load_served(bool with_controller = true) {
  const auto dir = source_dir() / "models/default";
  ServedModel served;
  served.name = "default";
  served.model = load_model(dir, {.precision = Precision::f32, .deterministic = true});
  served.tokenizer = Tokenizer::load(dir);
  served.deterministic = true;
  served.context = 512;
  served.chat.emplace(made_chat_template(), "the test's template",
                      served.tokenizer->token_bytes(served.tokenizer->bos_token_id()));
  if (with_controller) {
    use_controller(served, Controller::load(dir / "controllers/2l-harsh"), "2l-harsh");
    served.reasoning_effort = {{"low", 0.5}, {"medium", 0.7}, {"high", 0.85}};
  } else {
    use_fixed_policy(served, {}, 16);
  }
  served.costs = made_costs(served.horizon);
  return served;
}

class TestServer {
 public:
  explicit TestServer(SchedulerOptions options = default_options(), HttpOptions http = {},
                      bool with_controller = true)
      : TestServer(load_served(with_controller), options, http) {}
  explicit TestServer(ServedModel served, SchedulerOptions options = default_options(),
                      HttpOptions http = {})
      : served_(std::move(served)), scheduler_(served_, options, metrics_) {
    http.port = 0;
    if (http.threads == HttpOptions().threads) http.threads = 48;
    server_ = std::make_unique<HttpServer>(http, metrics_);
    port_ = server_->start();
    engine_ = std::thread([this] { scheduler_.run(); });
    server_->serve(served_, scheduler_);
  }
  ~TestServer() {
    server_->refuse();
    scheduler_.drain(5);
    scheduler_.stop();
    engine_.join();
    server_->stop();
  }

  static SchedulerOptions default_options() {
    SchedulerOptions options;
    options.batch = 4;
    options.queue = 8;
    options.cache_tokens = 4096;
    return options;
  }

  httplib::Client client() const {
    httplib::Client client("127.0.0.1", port_);
    client.set_read_timeout(60);
    return client;
  }
  struct Answer {
    int status = 0;
    Json json;
    std::string body;
    httplib::Headers headers;
  };
  Answer post(const std::string& path, const std::string& body) const {
    return answer(client().Post(path, body, "application/json"));
  }
  Answer post(const std::string& path, const Json& body) const { return post(path, body.dump()); }
  Answer get(const std::string& path) const { return answer(client().Get(path)); }

  // Waits until no sequence is queued or running.
  bool becomes_idle() const {
    for (int i = 0; i < 500; ++i) {
      const Metrics::Gauges gauges = metrics_.gauges();
      if (gauges.running == 0 && gauges.queued == 0) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return false;
  }

  const ServedModel& served() const { return served_; }
  const Metrics& metrics() const { return metrics_; }
  Scheduler& scheduler() { return scheduler_; }
  HttpServer& http() { return *server_; }
  int port() const { return port_; }

 private:
  static Answer answer(const httplib::Result& result) {
    if (!result) return {};
    Answer answer{result->status, {}, result->body, result->headers};
    answer.json = Json::parse(result->body, nullptr, false);
    return answer;
  }

  Metrics metrics_;
  ServedModel served_;
  Scheduler scheduler_;
  std::unique_ptr<HttpServer> server_;
  std::thread engine_;
  int port_ = 0;
};

// The JSON texts of a stream's events; the last is "[DONE]" where it ended well.
inline std::vector<std::string> events_of(const std::string& stream) {
  std::vector<std::string> events;
  for (size_t at = 0; at < stream.size();) {
    const size_t end = stream.find("\n\n", at);
    if (end == std::string::npos) break;
    const std::string event = stream.substr(at, end - at);
    if (event.starts_with("data: ")) events.push_back(event.substr(6));
    at = end + 2;
  }
  return events;
}

inline constexpr const char* complete = "/v1/completions";
inline constexpr const char* chat = "/v1/chat/completions";

// Loading takes longer than most tests; none of them changes the server.
inline TestServer& server() {
  static auto* const shared = new TestServer;
  return *shared;
}

inline Json completion(Json fields) {
  fields["prompt"] = fields.value("prompt", Json("The old house stood at the end of the village"));
  return fields;
}

inline std::string text_of(const TestServer::Answer& answer, size_t choice = 0) {
  return answer.json.at("choices").at(choice).at("text");
}

}  // namespace sol::test
