// Requests that are meant to hurt: too large in ways that say nothing of their size, or hidden in
// another's body; and clients that leave unseen.
#include <gmock/gmock.h>

#include "raw_client.h"
#include "served.h"

namespace sol::test {
namespace {

using testing::HasSubstr;
using testing::Not;

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

TEST(Limits, ABodyAsItIsIsRead) {
  const Json request{{"prompt", "a"}, {"max_tokens", 1}};
  for (const char* encoding : {"identity", "Identity"})
    EXPECT_THAT(answer_to(small(), with_length(request, std::string("Content-Encoding: ") +
                                                            encoding + "\r\n")),
                HasSubstr("HTTP/1.1 200"))
        << encoding;
  // Where there is no body, nothing is compressed.
  EXPECT_THAT(answer_to(small(),
                        "GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
                        "Content-Encoding: gzip\r\n\r\n"),
              HasSubstr("HTTP/1.1 200"));
}

// The answer comes although the client is still sending.
TEST(Limits, HoldForHeaders) {
  std::string headers;
  for (int i = 0; i < 2000; ++i) headers += "X-More: " + std::string(100, 'y') + "\r\n";
  const std::string answer = answer_to(small(), post(headers, ""));
  EXPECT_THAT(answer, HasSubstr("HTTP/1.1 431"));
  EXPECT_THAT(answer, HasSubstr("headers_too_large"));
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

// A request that others in between could cut elsewhere; what it hides must not be answered.
TEST(Limits, AmbiguousRequestsAreAnsweredOnceAndEnd) {
  const std::string hidden = "GET /v1/models HTTP/1.1\r\nHost: localhost\r\n\r\n";
  const std::string head =
      "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n";
  const std::string chunked = head + "Transfer-Encoding: chunked\r\n\r\n";
  for (const std::string& begin :
       {head + "Content-Length: abc\r\n\r\n", head + "Content-Length: 0x10\r\n\r\n",
        head + "Content-Length : 46\r\n\r\n", head + "Content-Length: 46, 46\r\n\r\n",
        head + "Content-Length: 0\r\nContent-Length: 46\r\n\r\n",
        head + "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        head + "Transfer-Encoding: xchunked\r\n\r\n", head + "Host: evil.example\r\n\r\n",
        head + "Host : evil.example\r\n\r\n", chunked + "0x2e\r\n", chunked + "+2e\r\n",
        chunked + "2ejunk\r\n"}) {
    const std::string answer = answer_to(small(), begin + hidden);
    EXPECT_THAT(answer, HasSubstr("HTTP/1.1 400")) << begin;
    EXPECT_THAT(answer, HasSubstr("Connection: close")) << begin;
    EXPECT_EQ(answer.find("HTTP/1.1 ", 1), std::string::npos) << begin << answer;
  }
}

TEST(Limits, RequestsThatAreClearlyCutAreAllAnswered) {
  const std::string body = R"({"tokens":[72]})";
  const std::string head =
      "POST /detokenize HTTP/1.1\r\nHost: localhost\r\nContent-Type: Application/JSON; a=b\r\n";
  const std::string answer = answer_to(
      small(), head + "Content-Length: 0015\r\n\r\n" + body + "\r\n" + head +
                   "Transfer-Encoding: chunked\r\n\r\n7;x=y\r\n" + body.substr(0, 7) +
                   "\r\n08\r\n" + body.substr(7) + "\r\n0\r\nX-Sum: 1\r\n\r\n" +
                   "GET http://localhost/health?x HTTP/1.1\r\nHost: localhost\r\nConnection: "
                   "keep-alive, Close\r\n\r\n");
  size_t answers = 0;
  for (size_t at = 0; (at = answer.find("HTTP/1.1 200", at)) != std::string::npos; ++at) ++answers;
  EXPECT_EQ(answers, 3u) << answer;
}

TEST(Limits, TooLongABodyIsRefusedBeforeItIsSent) {
  RawClient client(small());
  client.send(std::string("POST ") + complete +
              " HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
              "Content-Length: 1001\r\nExpect: 100-continue\r\n\r\n");
  EXPECT_TRUE(client.closed_within(3));
  EXPECT_THAT(client.answer(), HasSubstr("HTTP/1.1 413"));
  EXPECT_THAT(client.answer(), Not(HasSubstr("100 Continue")));
}

TEST(Limits, ABodyIsAskedForWhereItsClientWaits) {
  RawClient client(small());
  client.send(
      "POST /detokenize HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
      "Content-Length: 15\r\nExpect: 100-continue\r\nConnection: close\r\n\r\n");
  ASSERT_TRUE(client.hears("HTTP/1.1 100 Continue\r\n\r\n"));
  client.send(R"({"tokens":[72]})");
  EXPECT_THAT(client.rest(), HasSubstr("HTTP/1.1 200"));
}

// They cannot tell where a chunk ends.
TEST(Limits, OldClientsGetNoChunks) {
  const std::string body = Json{{"prompt", "a"}, {"max_tokens", 2}, {"stream", true}}.dump();
  const std::string answer = answer_to(
      small(), std::string("POST ") + complete + " HTTP/1.0\r\nContent-Type: application/json\r\n" +
                   "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body);
  EXPECT_THAT(answer, HasSubstr("HTTP/1.1 200"));
  EXPECT_THAT(answer, HasSubstr("Connection: close"));
  EXPECT_THAT(answer, Not(HasSubstr("chunked")));
  EXPECT_THAT(answer, HasSubstr("\r\n\r\ndata: {"));
  EXPECT_THAT(answer, testing::EndsWith("data: [DONE]\n\n"));
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
  EXPECT_EQ(status_of("BREW /health"), "HTTP/1.1 501");
  const auto head_of = [](const std::string& line) {
    return answer_to(small(), line + " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
  };
  EXPECT_THAT(head_of("GET /v1/completions"), HasSubstr("\r\nAllow: POST\r\n"));
  EXPECT_THAT(head_of("DELETE /v1/models"), HasSubstr("\r\nAllow: GET, HEAD\r\n"));
  for (const char* line : {"HEAD /v1/models", "HEAD /v1/models/default", "HEAD /"}) {
    const std::string answer = head_of(line);
    EXPECT_THAT(answer, testing::StartsWith("HTTP/1.1 200")) << answer;
    EXPECT_THAT(answer, testing::EndsWith("\r\n\r\n")) << answer;
    EXPECT_THAT(answer, HasSubstr("\r\nConnection: close\r\n"));
  }
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

TEST(Limits, LimitsBodies) {
  HttpOptions http;
  http.body_limit = 1000;
  TestServer small(TestServer::default_options(), http);
  const auto answer = small.post(complete, Json{{"prompt", std::string(5000, 'x')}});
  EXPECT_EQ(answer.status, 413);
  EXPECT_EQ(answer.json["error"]["code"], "body_too_large");
  EXPECT_EQ(small.get("/health").status, 200);
}

// What is the longest still goes.
TEST(Limits, FieldsAreTakenUpToTheirLengths) {
  const auto status = [](Json fields) {
    fields.update({{"prompt", "a"}, {"max_tokens", 1}});
    return server().post(complete, fields).status;
  };
  EXPECT_EQ(status({{"stop", std::vector<std::string>(16, std::string(1024, 'x'))}}), 200);
  EXPECT_EQ(status({{"user", std::string(256, 'x')}}), 200);
}

// However a request is framed, it has one size and one time.
TEST(Limits, RequestsWithoutAnEndAreGivenUp) {
  HttpOptions http;
  http.body_limit = 100000;
  http.request_seconds = 0.5;
  TestServer small(TestServer::default_options(), http);
  const std::string head =
      "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\n"
      "Content-Type: application/json\r\n";
  for (const std::string& begin :
       {std::string("GET /"), head + "X-Long: ", head + "Transfer-Encoding: chunked\r\n\r\n"}) {
    RawClient connection(small);
    const bool chunked = begin.find("chunked") != std::string::npos;
    const std::string more =
        chunked ? "1000\r\n" + std::string(0x1000, ' ') + "\r\n" : std::string(4096, 'x');
    bool open = connection.send(begin);
    int64_t sent = 0;
    for (; open && sent < (64 << 20); sent += 4096) open = connection.send(more);
    EXPECT_FALSE(open && !connection.closed_within(2)) << begin;
    EXPECT_LT(sent, 40 << 20) << begin;  // what sockets buffer, and what is read and forgotten
  }
  // A byte at a time.
  RawClient slow(small);
  bool closed = false;
  for (int i = 0; i < 60 && !closed; ++i) closed = !slow.send("a") || slow.closed_within(0.05);
  EXPECT_TRUE(closed);
  const auto compressed = small.client().Post(complete, {{"Content-Encoding", "gzip"}},
                                              std::string("\x1f\x8b"), "application/json");
  ASSERT_TRUE(compressed);
  EXPECT_EQ(compressed->status, 415);
  EXPECT_EQ(small.get("/health").status, 200);
}

// The body of a request that was refused unread is not the next request.
TEST(Limits, RefusedBodiesAreNotRequests) {
  RawClient connection(server());
  const std::string inner = "GET /v1/models HTTP/1.1\r\nHost: localhost\r\n\r\n";
  connection.send(
      "POST /v1/completions HTTP/1.1\r\nHost: evil.example\r\nContent-Type: text/plain\r\n"
      "Content-Length: " +
      std::to_string(inner.size()) + "\r\n\r\n" + inner);
  EXPECT_TRUE(connection.closed_within(3));
  EXPECT_THAT(connection.answer(), HasSubstr(" 403 "));
  EXPECT_THAT(connection.answer(), Not(HasSubstr(" 200 ")));
}

TEST(Limits, RangesAndEncodingsOfAnswersAreIgnored) {
  const auto whole = server().client().Get(
      "/v1/models", {{"Range", "bytes=0-1,0-1"}, {"Accept-Encoding", "br, gzip"}});
  ASSERT_TRUE(whole);
  EXPECT_EQ(whole->status, 200);
  EXPECT_FALSE(whole->has_header("Content-Encoding"));
  EXPECT_FALSE(Json::parse(whole->body)["data"].empty());
}

}  // namespace
}  // namespace sol::test
