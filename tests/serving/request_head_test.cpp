#include "serving/request_head.h"

#include <gtest/gtest.h>

#include "serving/api_error.h"

namespace sol {
namespace {

// The status with which such a head is refused; 0 when it is not.
int refused_with(const std::string& head) {
  try {
    (void)parse_request_head(head);
    return 0;
  } catch (const ApiError& error) {
    return error.status();
  }
}

std::string get(const std::string& fields) {
  return "GET /health HTTP/1.1\r\nHost: localhost\r\n" + fields + "\r\n";
}

std::string post(const std::string& fields) {
  return "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\n" + fields + "\r\n";
}

TEST(RequestHead, IsReadFieldByField) {
  const RequestHead head = parse_request_head(
      "POST /a%20b?c=d?e HTTP/1.1\r\nHost: localhost:8080\r\nX-Empty:\r\n"
      "CONTENT-length:\t 070 \r\nX-Some:  a:b c \r\n\r\n");
  EXPECT_EQ(head.method, "POST");
  EXPECT_EQ(head.path, "/a%20b");
  EXPECT_EQ(head.host, "localhost:8080");
  EXPECT_FALSE(head.http_1_0);
  EXPECT_FALSE(head.chunked);
  EXPECT_FALSE(head.close);
  EXPECT_FALSE(head.expects_continue);
  EXPECT_EQ(head.content_length, 70u);
  EXPECT_TRUE(head.has_body());
  ASSERT_EQ(head.fields.size(), 4u);
  EXPECT_EQ(*head.find("x-empty"), "");
  EXPECT_EQ(*head.find("x-some"), "a:b c");
  EXPECT_EQ(head.find("x-other"), nullptr);
}

TEST(RequestHead, SaysWhatFollows) {
  EXPECT_FALSE(parse_request_head(get("")).has_body());
  EXPECT_FALSE(parse_request_head(post("Content-Length: 0\r\n")).has_body());
  EXPECT_TRUE(parse_request_head(post("Transfer-Encoding: Chunked\r\n")).chunked);
  EXPECT_TRUE(parse_request_head(post("Expect: 100-Continue\r\n")).expects_continue);
  EXPECT_TRUE(parse_request_head(get("Connection: Keep-Alive, Close\r\n")).close);
  EXPECT_TRUE(parse_request_head(get("Connection: a\r\nConnection: close\r\n")).close);
  EXPECT_FALSE(parse_request_head(get("Connection: closed\r\n")).close);
  const RequestHead old = parse_request_head("GET / HTTP/1.0\r\n\r\n");
  EXPECT_TRUE(old.http_1_0);
  EXPECT_TRUE(old.close);
  // More than fits a number is too long, not another length.
  EXPECT_EQ(parse_request_head(post("Content-Length: 18446744073709551617\r\n")).content_length,
            std::numeric_limits<uint64_t>::max());
}

// What the target names is what is asked, whatever "Host" says.
TEST(RequestHead, TakesAbsoluteTargets) {
  const RequestHead head =
      parse_request_head("GET http://evil.example:80/x?y HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_EQ(head.host, "evil.example:80");
  EXPECT_EQ(head.path, "/x");
  EXPECT_EQ(parse_request_head("GET http://a?b HTTP/1.1\r\nHost: a\r\n\r\n").path, "/");
  EXPECT_EQ(parse_request_head("OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n").path, "*");
}

TEST(RequestHead, LengthsThatReadersTakeDifferentlyAreRefused) {
  for (const char* length : {"abc", "", " ", "0x10", "1e2", "38abc", "38, 38", "38,38", "+38", "-1",
                             "-0", "38 5", "38.0", "\"38\"", "%33%38", "\xd9\xa3"})
    EXPECT_EQ(refused_with(post("Content-Length: " + std::string(length) + "\r\n")), 400) << length;
  for (const char* fields :
       {"Content-Length : 70\r\n", "Content-Length\t: 70\r\n", " Content-Length: 70\r\n",
        "X: y\r\n Content-Length: 70\r\n", "Content-Length: 70\r\nContent-Length: 70\r\n",
        "Content-Length: 0\r\ncontent-length: 70\r\n", "Content-Length: 7\rX: 0\r\n",
        "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: chunked\r\nContent-Length: 0\r\n",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n",
        "Transfer-Encoding : chunked\r\n"})
    EXPECT_EQ(refused_with(post(fields)), 400) << fields;
  for (const char* coding : {"", "identity", "gzip", "gzip, chunked", "chunked, chunked",
                             "xchunked", "chunked;q=1", "\"chunked\"", "chunke%64",
                             "\x0b"
                             "chunked"})
    EXPECT_EQ(refused_with(post("Transfer-Encoding: " + std::string(coding) + "\r\n")), 400)
        << coding;
  EXPECT_EQ(refused_with("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n"), 400);
}

TEST(RequestHead, LinesThatAreNoFieldsAreRefused) {
  using namespace std::string_literals;
  for (const std::string& line :
       {"Host : evil"s, "Host: evil"s, "nocolon"s, ": x"s, "A B: c"s, "X\0Y: b"s, "X: a\0b"s,
        "X: a\rb"s, "X: a\x7f"s, "X: \x01"s, "(x): y"s, "\xc3\xa4: y"s,
        "Authorization: a\r\nAUTHORIZATION: b"s, "X: a\r\n b"s})
    EXPECT_EQ(refused_with(get(line + "\r\n")), 400) << line;
  EXPECT_EQ(refused_with(get("X: \xc3\xa4\t!\r\n")), 0);
}

TEST(RequestHead, NeedsOneHost) {
  EXPECT_EQ(refused_with("GET / HTTP/1.1\r\n\r\n"), 400);
  EXPECT_EQ(refused_with("GET / HTTP/1.0\r\n\r\n"), 0);
  for (const char* host : {"a b", "a@b", "a/b", "a\"b", "\xc3\xa4"})
    EXPECT_EQ(refused_with("GET / HTTP/1.1\r\nHost: " + std::string(host) + "\r\n\r\n"), 400)
        << host;
}

TEST(RequestHead, RequestLinesAreReadStrictly) {
  const auto line = [](const std::string& text) {
    return refused_with(text + "\r\nHost: localhost\r\n\r\n");
  };
  for (const char* text : {"GARBAGE",
                           "GET /",
                           "GET  / HTTP/1.1",
                           "GET\t/\tHTTP/1.1",
                           " GET / HTTP/1.1",
                           "GET / HTTP/1.1 ",
                           "GET / x HTTP/1.1",
                           "GET / http/1.1",
                           "GET / HTTP/1.10",
                           "GET / HTTP/11",
                           "GET health HTTP/1.1",
                           "GET * HTTP/1.1",
                           "GET /#a HTTP/1.1",
                           "GET /\xff HTTP/1.1",
                           "GET /\x7f HTTP/1.1",
                           "GET http:/// HTTP/1.1",
                           "GET http://a@b/ HTTP/1.1",
                           "GET https://a/ HTTP/1.1",
                           "G\"T / HTTP/1.1",
                           ""})
    EXPECT_EQ(line(text), 400) << text;
  EXPECT_EQ(line("BREW / HTTP/1.1"), 501);
  EXPECT_EQ(line("get / HTTP/1.1"), 501);
  EXPECT_EQ(line("GET / HTTP/2.0"), 505);
  EXPECT_EQ(line("GET / HTTP/0.9"), 505);
  EXPECT_EQ(line("GET / HTTP/1.2"), 0);
  EXPECT_EQ(line("GET /" + std::string(7999, 'a') + " HTTP/1.1"), 0);
  EXPECT_EQ(line("GET /" + std::string(8000, 'a') + " HTTP/1.1"), 414);
  EXPECT_EQ(refused_with(get("Expect: a cake\r\n")), 417);
}

TEST(RequestHead, HasALimitedNumberOfFields) {
  std::string fields;
  for (size_t i = 1; i < most_head_fields; ++i) fields += "a:b\r\n";
  EXPECT_EQ(refused_with(get(fields)), 0);
  EXPECT_EQ(refused_with(get(fields + "a:b\r\n")), 431);
}

TEST(RequestHead, ItsEndIsFoundHoweverItArrives) {
  const std::string head = get("X: y\r\n"), bytes = head + "POST / HTTP/1.1\r\n\r\n";
  size_t scanned = 0;
  for (size_t size = 0; size < head.size(); ++size)
    EXPECT_EQ(find_head_end(std::string_view(bytes).substr(0, size), scanned), std::nullopt);
  EXPECT_EQ(find_head_end(bytes, scanned), head.size());
  scanned = 0;
  EXPECT_EQ(find_head_end(bytes, scanned), head.size());
}

TEST(RequestHead, HasALimitedLength) {
  const auto refused = [](const std::string& bytes) {
    size_t scanned = 0;
    try {
      (void)find_head_end(bytes, scanned);
      return 0;
    } catch (const ApiError& error) {
      return error.status();
    }
  };
  EXPECT_EQ(refused(std::string(most_head_bytes, 'a')), 0);
  EXPECT_EQ(refused(std::string(most_head_bytes + 1, 'a')), 431);
  EXPECT_EQ(refused("GET / HTTP/1.1\nHost: a\n\n"), 400);
  EXPECT_EQ(refused("\n"), 400);
}

}  // namespace
}  // namespace sol
