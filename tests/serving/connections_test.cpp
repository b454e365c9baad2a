// Clients that hold connections: idle, slow, too many at once, or at the server's end.
#include <gmock/gmock.h>

#include <array>
#include <deque>
#include <functional>
#include <optional>

#include "raw_client.h"
#include "served.h"
#include "serving/connection.h"

namespace sol::test {
namespace {

using testing::HasSubstr;

const std::string slow_body =
    "POST /detokenize HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    "Content-Length: 15\r\n\r\n{\"tokens\"";

double seconds_of(const std::function<void()>& action) {
  const auto begin = std::chrono::steady_clock::now();
  action();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

TestServer with_threads(int threads) {
  HttpOptions http;
  http.threads = threads;
  return TestServer(TestServer::default_options(), http);
}

// Whether so many bytes reach a client that takes 4 KiB twenty times a second.
bool reach_a_slow_client(size_t bytes, const ConnectionLimits& limits) {
  std::array<int, 2> ends{};
  EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()), 0);
  const int room = 4096;
  setsockopt(ends[1], SOL_SOCKET, SO_SNDBUF, &room, sizeof(room));
  std::thread client([&] {
    std::array<char, 4096> buffer;
    while (recv(ends[0], buffer.data(), buffer.size(), 0) > 0)
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
  });
  const Ending ending;
  bool written = false;
  {
    Connection connection(ends[1], limits, ending);
    const std::string answer(bytes, 'x');
    written = connection.write(answer.data(), answer.size()) > 0;
  }
  client.join();
  close(ends[0]);
  return written;
}

TEST(Connections, AClientThatTakesItsAnswerTooSlowlyIsGivenUp) {
  ConnectionLimits limits;
  limits.write = std::chrono::milliseconds(300);  // longer than it waits for any piece
  limits.least_rate = 1 << 20;
  EXPECT_FALSE(reach_a_slow_client(256 << 10, limits));
  // As long as it takes: more than that time in all, but not too slow.
  limits.least_rate = 1024;
  EXPECT_TRUE(reach_a_slow_client(64 << 10, limits));
}

TEST(Connections, ThoseThatSayNothingKeepNobodyWaiting) {
  TestServer server = with_threads(2);
  std::deque<RawClient> clients;
  for (int i = 0; i < 60; ++i) {
    clients.emplace_back(server);  // idle
    clients.emplace_back(server).send("POST /v1/completions HTTP/1.1\r\nHost: loc");
    clients.emplace_back(server).send("GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n");
  }
  EXPECT_TRUE(clients.back().hears("{\"status\":\"ok\"}"));
  EXPECT_LT(seconds_of([&] { EXPECT_EQ(server.get("/v1/models").status, 200); }), 3);
  // They are served all the same once they speak.
  clients[1].send("alhost\r\nConnection: close\r\n\r\n");
  EXPECT_THAT(clients[1].rest(), HasSubstr("HTTP/1.1 415"));
  clients[2].send("GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
  EXPECT_THAT(clients[2].rest(), testing::EndsWith("{\"status\":\"ok\"}"));
}

TEST(Connections, EmptyLinesAreNoRequestAndKeepNobodyWaiting) {
  TestServer server = with_threads(2);
  RawClient few(server);
  few.send("\r\n\r\nGET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
  EXPECT_THAT(few.rest(), HasSubstr("HTTP/1.1 200"));
  RawClient many(server);
  std::string lines;
  for (int i = 0; i < 1 << 16; ++i) lines += "\r\n";
  many.send(lines);
  EXPECT_THAT(many.rest(), HasSubstr("HTTP/1.1 400"));
}

TEST(Connections, LongPathsAreAnswered) {
  TestServer server = with_threads(2);
  for (const size_t length : {900u, 1100u, 7900u}) {
    const auto answer = server.get("/v1/models/" + std::string(length, 'a'));
    EXPECT_EQ(answer.status, 404) << length;
    EXPECT_EQ(answer.json["error"]["code"], length < 1000 ? "model_not_found" : "not_found");
  }
  RawClient longest(server);
  longest.send("GET /" + std::string(7999, 'a') +
               " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
  EXPECT_THAT(longest.rest(), HasSubstr("HTTP/1.1 404"));
}

TEST(Connections, WhereAllThreadsAreAtWorkThatIsSaid) {
  TestServer server = with_threads(2);
  RawClient first(server), second(server);
  first.send(slow_body);
  second.send(slow_body);
  // Both have begun once nobody answers another.
  TestServer::Answer refused;
  for (int i = 0; i < 100 && refused.status != 503; ++i) refused = server.get("/v1/models");
  EXPECT_EQ(refused.status, 503);
  EXPECT_EQ(refused.json["error"]["code"], "busy");
  EXPECT_EQ(refused.json["error"]["type"], "server_error");
  EXPECT_THAT(refused.headers, testing::Contains(testing::Pair("Retry-After", "1")));
  EXPECT_LT(seconds_of([&] { EXPECT_EQ(server.get("/health").status, 200); }), 3);
  EXPECT_EQ(server.client().Head("/health")->status, 200);
  first.send(":[72]}");
  EXPECT_TRUE(first.hears("HTTP/1.1 200"));
  EXPECT_EQ(server.get("/v1/models").status, 200);
}

TEST(Connections, UnfinishedRequestsDoNotKeepTheServerFromEnding) {
  std::optional<TestServer> server(std::in_place);
  std::deque<RawClient> clients;
  for (int i = 0; i < 10; ++i) {
    clients.emplace_back(*server);
    clients.emplace_back(*server).send("GET /health HTTP/1.1\r\nHost");
    clients.emplace_back(*server).send(slow_body);
  }
  EXPECT_EQ(server->get("/health").status, 200);
  EXPECT_LT(seconds_of([&] { server.reset(); }), 5);  // a request has 30 seconds
  for (RawClient& client : clients) EXPECT_TRUE(client.closed_within(3));
  EXPECT_THAT(clients.back().answer(), HasSubstr("HTTP/1.1 503"));
}

TEST(Connections, WhatComesTooLateIsSaid) {
  HttpOptions http;
  http.request_seconds = 0.3;
  TestServer server(TestServer::default_options(), http);
  for (const std::string& begin : {std::string("GET /health HTTP/1.1\r\n"), slow_body}) {
    RawClient client(server);
    client.send(begin);
    EXPECT_THAT(client.rest(), HasSubstr("HTTP/1.1 408"));
    EXPECT_THAT(client.answer(), HasSubstr("request_timeout"));
  }
}

// A client that sends much more than it may still reads the answer.
TEST(Connections, AnAnswerReachesAClientThatGoesOnSending) {
  HttpOptions http;
  http.body_limit = 1000;
  TestServer server(TestServer::default_options(), http);
  RawClient client(server);
  client.send(
      "POST /detokenize HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
      "Content-Length: 4000000\r\n\r\n");
  client.send(std::string(4000000, ' '));
  EXPECT_THAT(client.rest(), HasSubstr("HTTP/1.1 413"));
}

TEST(Connections, AServerOnAnyLoopbackAddressChecksItsName) {
  for (const char* host : {"127.0.0.2", "LOCALHOST"}) {
    HttpOptions http;
    http.host = host;
    TestServer server(TestServer::default_options(), http);
    httplib::Client client(host, server.port());
    ASSERT_TRUE(client.Get("/health")) << host;
    EXPECT_EQ(client.Get("/health")->status, 200) << host;
    EXPECT_EQ(client.Get("/health", {{"Host", "evil.example"}})->status, 403) << host;
  }
}

}  // namespace
}  // namespace sol::test
