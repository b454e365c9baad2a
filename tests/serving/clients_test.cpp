// Clients that wait, leave or come when the server loads or ends.
#include <gmock/gmock.h>

#include <future>

#include "served.h"

namespace sol::test {
namespace {

using testing::HasSubstr;

// A stream whose first event has come, read on when asked to.
class OpenStream {
 public:
  OpenStream(const TestServer& server, const Json& request) {
    thread_ = std::thread([this, &server, body = request.dump()] {
      auto client = server.client();
      httplib::Request http;
      http.method = "POST";
      http.path = complete;
      http.headers = {{"Content-Type", "application/json"}};
      http.body = body;
      http.content_receiver = [this](const char* data, size_t size, uint64_t, uint64_t) {
        text_.append(data, size);
        if (!begun_.exchange(true)) first_.set_value();
        return !leave_;
      };
      client.send(http);
      if (!begun_.exchange(true)) first_.set_value();
    });
    first_.get_future().wait();
  }
  ~OpenStream() {
    leave();
    if (thread_.joinable()) thread_.join();
  }
  void leave() { leave_ = true; }
  std::string rest() {
    thread_.join();
    return text_;
  }

 private:
  std::promise<void> first_;
  std::atomic<bool> begun_{false}, leave_{false};
  std::string text_;
  std::thread thread_;
};

Json long_stream() {
  return completion({{"max_tokens", 480}, {"ignore_eos", true}, {"stream", true}});
}

TEST(HttpServer, AFullQueueIsSaidWithWhenToComeBack) {
  SchedulerOptions options = TestServer::default_options();
  options.batch = 1;
  options.queue = 1;
  TestServer narrow(options);
  OpenStream running(narrow, long_stream());
  auto waiting = std::async(std::launch::async, [&] {
    return narrow.post(complete, completion({{"max_tokens", 2}})).status;
  });
  while (narrow.metrics().gauges().queued == 0)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  const auto refused = narrow.post(complete, completion({{"max_tokens", 2}}));
  EXPECT_EQ(refused.status, 429);
  EXPECT_EQ(refused.json["error"]["code"], "queue_full");
  ASSERT_TRUE(refused.headers.contains("Retry-After"));
  EXPECT_GE(std::stoi(refused.headers.find("Retry-After")->second), 1);
  running.leave();
  EXPECT_EQ(waiting.get(), 200);
}

TEST(HttpServer, AClientThatLeavesFreesItsPlace) {
  TestServer fresh;
  {
    OpenStream stream(fresh, long_stream());
    // Gauges are set after the step that gave the first token.
    while (fresh.metrics().gauges().running != 1)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_TRUE(fresh.becomes_idle());
  EXPECT_EQ(fresh.metrics().gauges().reserved_tokens, 0);
  // What is left of the cache are kept beginnings.
  EXPECT_LE(fresh.served().model->cache_use().blocks, 512u / 32u);
  // One that waits for the whole answer.
  auto client = fresh.client();
  client.set_read_timeout(0, 50000);
  client.Post(complete, completion({{"max_tokens", 480}, {"ignore_eos", true}}).dump(),
              "application/json");
  EXPECT_TRUE(fresh.becomes_idle());
  EXPECT_EQ(fresh.metrics().gauges().reserved_tokens, 0);
}

TEST(HttpServer, DrainsInOrder) {
  TestServer fresh;
  OpenStream stream(fresh, long_stream());
  fresh.http().refuse();
  const auto refused = fresh.post(complete, completion({{"max_tokens", 2}}));
  EXPECT_EQ(refused.status, 503);
  EXPECT_EQ(refused.json["error"]["code"], "shutting_down");
  EXPECT_EQ(fresh.get("/health").status, 503);
  fresh.scheduler().drain(60);
  EXPECT_EQ(events_of(stream.rest()).back(), "[DONE]");
}

TEST(HttpServer, WhatIsNotDoneWhenTheTimeIsUpEndsWithAnError) {
  TestServer fresh;
  OpenStream stream(fresh, long_stream());
  fresh.scheduler().drain(0);
  fresh.scheduler().stop();
  const auto events = events_of(stream.rest());
  ASSERT_FALSE(events.empty());
  EXPECT_THAT(events.back(), HasSubstr("shutting down"));
}

TEST(HttpServer, LoadsBeforeItServes) {
  Metrics metrics;
  HttpOptions http;
  http.port = 0;
  HttpServer loading(http, metrics);
  const int port = loading.start();
  httplib::Client client("127.0.0.1", port);
  for (const char* path : {"/health", "/v1/models"}) {
    const auto result = client.Get(path);
    ASSERT_TRUE(result);
    EXPECT_EQ(result->status, 503);
    EXPECT_EQ(Json::parse(result->body)["error"]["code"], "loading");
  }
  const auto page = client.Get("/");
  ASSERT_TRUE(page);
  EXPECT_EQ(page->status, 200);
  EXPECT_THROW(
      {
        HttpOptions taken;
        taken.port = port;
        HttpServer(taken, metrics).start();
      },
      Error);
}

}  // namespace
}  // namespace sol::test
