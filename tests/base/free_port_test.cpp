#include "base/free_port.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>

#include "throws.h"

namespace sol {
namespace {

TEST(FreePort, MayBeListenedAt) {
  const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
  ASSERT_GE(socket, 0);
  // Somebody else may be quicker, but not every time.
  bool listening = false;
  for (int i = 0; i < 10 && !listening; ++i) {
    const int port = free_port();
    ASSERT_GT(port, 0);
    ASSERT_LT(port, 65536);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(static_cast<uint16_t>(port));
    listening = ::bind(socket, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0 &&
                ::listen(socket, 1) == 0;
  }
  EXPECT_TRUE(listening);
  ::close(socket);
}

TEST(FreePort, APortIsNotFreeWhileSomebodyListens) {
  const int port = free_port();
  require_free_port(port);
  require_free_port(port);  // asking takes nothing away
  const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<uint16_t>(port));
  ASSERT_EQ(::bind(socket, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  ASSERT_EQ(::listen(socket, 1), 0);
  EXPECT_THAT([&] { require_free_port(port); },
              test::throws({"port " + std::to_string(port), "Address already in use"}));
  ::close(socket);
}

}  // namespace
}  // namespace sol
