#include "serving/access.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>

#include "serving/api_error.h"
#include "serving/loopback.h"

namespace sol {
namespace {

sockaddr_storage address(const std::string& text) {
  sockaddr_storage made{};
  if (text.find(':') == std::string::npos) {
    made.ss_family = AF_INET;
    EXPECT_EQ(inet_pton(AF_INET, text.c_str(), &reinterpret_cast<sockaddr_in&>(made).sin_addr), 1);
  } else {
    made.ss_family = AF_INET6;
    EXPECT_EQ(inet_pton(AF_INET6, text.c_str(), &reinterpret_cast<sockaddr_in6&>(made).sin6_addr),
              1);
  }
  return made;
}

TEST(Loopback, IsToldByTheAddress) {
  for (const char* text : {"127.0.0.1", "127.0.0.2", "127.255.0.1", "::1", "::ffff:127.0.0.1"})
    EXPECT_TRUE(is_loopback(address(text))) << text;
  for (const char* text :
       {"0.0.0.0", "128.0.0.1", "10.0.0.1", "::", "::2", "::ffff:10.0.0.1", "fe80::1", "7f00::1"})
    EXPECT_FALSE(is_loopback(address(text))) << text;
}

TEST(Loopback, HasItsNames) {
  for (const char* name : {"localhost", "LocalHost", "127.0.0.1", "127.0.0.2", "[::1]",
                           "[0:0:0:0:0:0:0:1]", "[::ffff:127.0.0.1]"})
    EXPECT_TRUE(is_loopback_name(name)) << name;
  for (const char* name : {"", "localhost.evil.example", "127.0.0.1.evil.example", "10.0.0.1",
                           "::1", "[::1", "[]", "[", "127.0.0.1x", "evil.example"})
    EXPECT_FALSE(is_loopback_name(name)) << name;
}

int refused_with(const std::string& host, const AccessRules& rules, bool open = false) {
  try {
    check_access(parse_request_head("GET /v1/models HTTP/1.1\r\nHost: " + host + "\r\n\r\n"), rules,
                 open);
    return 0;
  } catch (const ApiError& error) {
    return error.status();
  }
}

TEST(Access, ALocalServerAnswersToItsOwnNames) {
  const AccessRules local{"", true, "ip6-localhost"};
  for (const char* host : {"localhost", "localhost:8080", "127.0.0.2:8080", "[::1]", "[::1]:8080",
                           "ip6-localhost", "IP6-Localhost:8080", ""})
    EXPECT_EQ(refused_with(host, local), 0) << host;
  for (const char* host : {"evil.example", "evil.example:8080", "localhost.evil.example",
                           "127.0.0.1.evil.example", "10.0.0.1:8080"})
    EXPECT_EQ(refused_with(host, local), 403) << host;
  EXPECT_EQ(refused_with("evil.example", {"", false, "0.0.0.0"}), 0);
  EXPECT_EQ(refused_with("evil.example", local, true), 403);
  EXPECT_EQ(refused_with("localhost", {"key", true, ""}), 401);
  EXPECT_EQ(refused_with("localhost", {"key", true, ""}, true), 0);
}

}  // namespace
}  // namespace sol
