#include "base/free_port.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/fail.h"

namespace sol {
namespace {

// A TCP socket at this address, closed at the end of its life. `what` begins messages.
class BoundSocket {
 public:
  BoundSocket(in_addr_t address, int port, const std::string& what)
      : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    bound_.sin_family = AF_INET;
    bound_.sin_addr.s_addr = htonl(address);
    bound_.sin_port = htons(static_cast<uint16_t>(port));
    socklen_t length = sizeof(bound_);
    // As servers do: connections that have ended are no reason against a port.
    const int yes = 1;
    ::setsockopt(socket_, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
    auto* const generic = reinterpret_cast<sockaddr*>(&bound_);
    // Not listened at: who connects meanwhile would take this for the real one.
    if (socket_ >= 0 && ::bind(socket_, generic, length) == 0 &&
        ::getsockname(socket_, generic, &length) == 0)
      return;
    const int reason = errno;
    close();
    fail("{}: {}", what, std::strerror(reason));
  }
  ~BoundSocket() { close(); }
  BoundSocket(const BoundSocket&) = delete;
  BoundSocket& operator=(const BoundSocket&) = delete;

  int port() const { return ntohs(bound_.sin_port); }

 private:
  void close() {
    if (socket_ >= 0) ::close(socket_);
  }
  int socket_;
  sockaddr_in bound_{};
};

}  // namespace

int free_port() {
  return BoundSocket(INADDR_LOOPBACK, 0, "no free port to meet at").port();
}

void require_free_port(int port) {
  BoundSocket(INADDR_ANY, port, fmt::format("port {} of this machine", port));
}

}  // namespace sol
