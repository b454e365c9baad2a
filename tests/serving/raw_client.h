// A connection that sends bytes as they are: what no client library would.
#pragma once

#include <arpa/inet.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <string>

#include "served.h"

namespace sol::test {

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

  // False when the server takes no more; its answer says why.
  bool send(const std::string& bytes) {
    for (size_t sent = 0; sent < bytes.size();) {
      const ssize_t count = ::send(socket_, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
      if (count <= 0) return false;
      sent += static_cast<size_t>(count);
    }
    return true;
  }

  // Whether the server has closed within so many seconds; what it said by then is in answer().
  bool closed_within(double seconds) {
    using std::chrono::steady_clock;
    const auto end = steady_clock::now() + std::chrono::duration<double>(seconds);
    std::array<char, 4096> buffer;
    while (true) {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - steady_clock::now());
      pollfd waited{socket_, POLLIN, 0};
      if (left.count() <= 0 || poll(&waited, 1, static_cast<int>(left.count())) == 0) return false;
      const ssize_t count = recv(socket_, buffer.data(), buffer.size(), 0);
      if (count <= 0) return true;
      answer_.append(buffer.data(), static_cast<size_t>(count));
    }
  }
  const std::string& answer() const { return answer_; }

  // Whether the server says this within ten seconds.
  bool hears(const std::string& text) {
    for (int i = 0; i < 200 && answer_.find(text) == std::string::npos; ++i)
      if (closed_within(0.05)) break;
    return answer_.find(text) != std::string::npos;
  }

  // Up to the end of the connection, which must come within ten seconds.
  const std::string& rest() {
    EXPECT_TRUE(closed_within(10)) << "the connection stays open after: " << answer_;
    return answer_;
  }

 private:
  int socket_;
  std::string answer_;
};

}  // namespace sol::test
