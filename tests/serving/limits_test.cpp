// Requests that are meant to hurt: too large in ways that say nothing of their size, or hidden in
// another's body; and clients that leave unseen.
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>

#include "served.h"

namespace sol::test {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr const char* complete = "/v1/completions";

class RawClient {
 public:
  explicit RawClient(const TestServer& server) : socket_(socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(server.port()));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  }
  ~RawClient() { close(socket_); }
  RawClient(const RawClient&) = delete;
  RawClient& operator=(const RawClient&) = delete;

  void send(const std::string& bytes) {
    for (size_t sent = 0; sent < bytes.size();) {
      const ssize_t count = ::send(socket_, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
      if (count <= 0) return;  // refused; the answer says why
      sent += static_cast<size_t>(count);
    }
  }
  // Up to the end of the connection, which must come within ten seconds.
  std::string rest() {
    std::string text;
    std::array<char, 4096> buffer;
    pollfd waited{socket_, POLLIN, 0};
    while (poll(&waited, 1, 10000) > 0) {
      const ssize_t count = recv(socket_, buffer.data(), buffer.size(), 0);
      if (count <= 0) return text;
      text.append(buffer.data(), static_cast<size_t>(count));
    }
    ADD_FAILURE() << "the connection stays open after: " << text;
    return text;
  }

 private:
  int socket_;
};

std::string answer_to(const TestServer& server, const std::string& bytes) {
  RawClient client(server);
  client.send(bytes);
  return client.rest();
}

std::string post(const std::string& headers, const std::string& body) {
  return std::string("POST ") + complete + " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n" +
         "Content-Type: application/json\r\n" + headers + "\r\n" + body;
}

std::string with_length(const Json& json, const std::string& more = "") {
  const std::string body = json.dump();
  return post("Content-Length: " + std::to_string(body.size()) + "\r\n" + more, body);
}

TestServer& small() {
  static auto* const shared = [] {
    HttpOptions http;
    http.body_limit = 1000;
    return new TestServer(TestServer::default_options(), http);
  }();
  return *shared;
}

TEST(Limits, HoldForBodiesInPieces) {
  std::string pieces;
  for (int i = 0; i < 1000; ++i) pieces += "64\r\n" + std::string(100, ' ') + "\r\n";
  const std::string chunked = "Transfer-Encoding: chunked\r\n";
  const std::string answer = answer_to(small(), post(chunked, pieces + "0\r\n\r\n"));
  EXPECT_THAT(answer, HasSubstr("HTTP/1.1 413"));
  EXPECT_THAT(answer, HasSubstr("body_too_large"));
  const std::string good = R"({"prompt":"a","max_tokens":1})";
  EXPECT_THAT(answer_to(small(), post(chunked, "1d\r\n" + good + "\r\n0\r\n\r\n")),
              HasSubstr("HTTP/1.1 200"));
}

TEST(Limits, ACompressedBodyIsRefusedUnread) {
  auto client = small().client();
  client.set_compress(true);
  const auto answer =
      client.Post(complete, Json{{"prompt", std::string(500, 'x')}}.dump(), "application/json");
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status, 415);
  EXPECT_EQ(Json::parse(answer->body)["error"]["code"], "unsupported_encoding");
}

// The answer comes although the client is still sending.
TEST(Limits, HoldForHeaders) {
  std::string headers;
  for (int i = 0; i < 2000; ++i) headers += "X-More: " + std::string(100, 'y') + "\r\n";
  const std::string answer = answer_to(small(), post(headers, ""));
  EXPECT_THAT(answer, HasSubstr("HTTP/1.1 413"));
}

// Were it answered, a page elsewhere could bring any request along past the check of its host.
TEST(Limits, ABodyThatIsNotReadIsNoRequest) {
  const std::string hidden = "GET /v1/models HTTP/1.1\r\nHost: localhost\r\n\r\n";
  const std::string length = "Content-Length: " + std::to_string(hidden.size()) + "\r\n\r\n";
  for (const char* head : {"POST /v1/completions HTTP/1.1\r\nHost: elsewhere.example\r\n",
                           "GET /health HTTP/1.1\r\nHost: localhost\r\n"}) {
    const std::string answer = answer_to(small(), head + length + hidden);
    EXPECT_THAT(answer, HasSubstr("HTTP/1.1 "));
    EXPECT_THAT(answer, Not(HasSubstr("\"data\""))) << head;
  }
}

TEST(Limits, WhatIsNoHttpIsAnsweredOnce) {
  const std::string answer = answer_to(small(), "GARBAGE\r\n\r\n");
  EXPECT_THAT(answer, HasSubstr("HTTP/1.1 400"));
  EXPECT_EQ(answer.find("HTTP/1.1", 1), std::string::npos);
}

TEST(Limits, EachPathTakesItsMethod) {
  const auto status_of = [](const std::string& line) {
    return answer_to(small(), line + " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        .substr(0, 12);
  };
  EXPECT_EQ(status_of("GET /v1/completions"), "HTTP/1.1 405");
  EXPECT_EQ(status_of("PUT /v1/completions"), "HTTP/1.1 405");
  EXPECT_EQ(status_of("POST /health"), "HTTP/1.1 405");
  EXPECT_EQ(status_of("DELETE /nothing"), "HTTP/1.1 404");
  EXPECT_EQ(status_of("GET /health"), "HTTP/1.1 200");
  EXPECT_EQ(status_of("HEAD /health"), "HTTP/1.1 200");
  // Without a length there is no body to wait for.
  EXPECT_EQ(status_of("POST /v1/completions"), "HTTP/1.1 415");
}

TEST(Limits, ACompletionHasNoRanges) {
  const Json request{{"prompt", "a"}, {"max_tokens", 1}};
  const std::string answer = answer_to(small(), with_length(request, "Range: bytes=5-9\r\n"));
  EXPECT_THAT(answer, HasSubstr("HTTP/1.1 200"));
  EXPECT_THAT(answer, HasSubstr("finish_reason"));
}

// A client that has sent more than one request and goes away is noticed all the same.
TEST(Limits, ClientsThatLeaveSomethingUnreadAreNoticed) {
  TestServer fresh;
  {
    RawClient client(fresh);
    const std::string body =
        Json{{"prompt", "a"}, {"max_tokens", 480}, {"ignore_eos", true}}.dump();
    client.send(std::string("POST ") + complete +
                " HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                "Content-Length: " +
                std::to_string(body.size()) + "\r\n\r\n" + body);
    while (fresh.metrics().gauges().running == 0)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    client.send("GET /health HTTP/1.1\r\n");
  }
  ASSERT_TRUE(fresh.becomes_idle());
  const std::string metrics = fresh.get("/metrics").body;
  const size_t count = metrics.find("\nsol_generated_tokens_total ");
  ASSERT_NE(count, std::string::npos);
  EXPECT_LT(std::stoi(metrics.substr(count + 28)), 480);
}

}  // namespace
}  // namespace sol::test
