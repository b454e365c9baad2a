#include "serving/api_key.h"

#include "served.h"
#include "throws.h"

namespace sol::test {
namespace {

TEST(ApiKey, WhatNoHeaderCarriesIsRefusedWithoutBeingRepeated) {
  const auto refused = [](const std::string& key, const char* why) {
    EXPECT_THAT([&] { require_sendable_key(key, "SOL_API_KEY"); }, throws({"SOL_API_KEY", why}));
    try {
      require_sendable_key(key, "SOL_API_KEY");
    } catch (const Error& error) {
      EXPECT_EQ(std::string(error.what()).find("secret"), std::string::npos);
    }
  };
  refused("", "empty");
  refused("secret key", "character 7 of the key is a space");
  refused(" secret", "character 1");
  refused("secret\t", "a tab");
  refused("secret\n", "the end of a line");
  refused("secretключ", "not ASCII");
  refused("secret\x7f", "a control character");
  refused(std::string("secret\0", 7), "a control character");
  refused(std::string(4097, 's'), "4097");
}

// Every key that is not refused opens the server, and nothing near it does.
TEST(ApiKey, WhatIsTakenOpens) {
  std::string all;
  for (char c = '!'; c < 0x7f; ++c) all += c;
  HttpOptions http;
  for (const std::string& key :
       {all, std::string("a%41b"), std::string("k"), std::string(4096, 's')}) {
    http.api_key = key;
    Metrics metrics;
    http.port = 0;
    HttpServer server(http, metrics);
    httplib::Client client("127.0.0.1", server.start());
    const auto status = [&](const std::string& sent) {
      const auto answer = client.Get("/metrics", {{"Authorization", "Bearer " + sent}});
      return answer ? answer->status : 0;
    };
    EXPECT_EQ(status(key), 200);
    EXPECT_EQ(status(key + "x"), 401);
    EXPECT_EQ(status(key.substr(1)), 401);
  }
  http.api_key = "a b";
  Metrics metrics;
  EXPECT_THAT([&] { HttpServer(http, metrics); }, throws({"a space"}));
}

}  // namespace
}  // namespace sol::test
