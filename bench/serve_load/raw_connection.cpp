#include "serve_load/raw_connection.h"

#include <arpa/inet.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "base/fail.h"

namespace sol::load {
namespace {

using Clock = std::chrono::steady_clock;

bool wait_for(int socket, short events, Clock::time_point deadline) {
  pollfd waited{socket, events, 0};
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
    const int ready = poll(&waited, 1, static_cast<int>(std::max<int64_t>(left.count(), 0)));
    if (ready >= 0 || errno != EINTR) return ready > 0;
  }
}

RawAnswer parse_answer(const std::string& text) {
  RawAnswer answer;
  const size_t head_end = text.find("\r\n\r\n");
  if (!text.starts_with("HTTP/1.1 ") || head_end == std::string::npos) return answer;
  answer.status = std::atoi(text.c_str() + 9);
  for (size_t begin = text.find("\r\n") + 2; begin < head_end;) {
    const size_t end = text.find("\r\n", begin);
    const size_t colon = text.find(": ", begin);
    if (colon < end) {
      std::string name = text.substr(begin, colon - begin);
      std::ranges::transform(name, name.begin(), [](unsigned char c) { return std::tolower(c); });
      answer.headers[name] = text.substr(colon + 2, end - colon - 2);
    }
    begin = end + 2;
  }
  answer.body = text.substr(head_end + 4);
  return answer;
}

}  // namespace

RawConnection::RawConnection(int port, int receive_buffer)
    : socket_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  if (socket_ < 0) fail("no socket: {}", std::strerror(errno));
  // Before connecting: it decides the window that is offered.
  if (receive_buffer > 0)
    setsockopt(socket_, SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof(receive_buffer));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0) {
    const int error = errno;
    close(socket_);
    fail("cannot connect to port {}: {}", port, std::strerror(error));
  }
}

RawConnection::~RawConnection() {
  if (socket_ >= 0) close(socket_);
}

bool RawConnection::send(std::string_view bytes, std::chrono::milliseconds patience) {
  const auto deadline = Clock::now() + patience;
  while (!bytes.empty()) {
    if (!wait_for(socket_, POLLOUT, deadline)) return false;
    const ssize_t sent = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && errno != EAGAIN && errno != EINTR) return false;
    if (sent > 0) bytes.remove_prefix(static_cast<size_t>(sent));
  }
  return true;
}

bool RawConnection::read_to_end(std::string& text, std::chrono::milliseconds patience) {
  const auto deadline = Clock::now() + patience;
  std::array<char, 65536> buffer;
  for (;;) {
    if (!wait_for(socket_, POLLIN, deadline)) return false;
    const ssize_t got = recv(socket_, buffer.data(), buffer.size(), 0);
    if (got <= 0) return true;  // closed, or reset
    text.append(buffer.data(), static_cast<size_t>(got));
  }
}

bool RawConnection::wait_for_answer(std::chrono::milliseconds patience) const {
  return wait_for(socket_, POLLIN, Clock::now() + patience);
}

void RawConnection::reset() {
  const linger at_once{1, 0};
  setsockopt(socket_, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
  close(socket_);
  socket_ = -1;
}

RawAnswer exchange(int port, std::string_view bytes, std::chrono::milliseconds patience) {
  RawConnection connection(port);
  // What the server refuses to read cannot all be sent; its answer counts.
  connection.send(bytes, patience);
  std::string text;
  const bool ended = connection.read_to_end(text, patience);
  RawAnswer answer = parse_answer(text);
  answer.ended = ended;
  return answer;
}

}  // namespace sol::load
