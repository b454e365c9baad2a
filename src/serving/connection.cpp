#include "serving/connection.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace sol {
namespace {

constexpr size_t buffer_bytes = 16 * 1024;
constexpr std::chrono::seconds longest_lingering{2};
constexpr size_t most_lingering_bytes = 16 << 20;

// What httplib makes of a request's head before it looks for a body.
void prepare(httplib::Request& request, Connection& connection) {
  request.ranges.clear();                    // it would copy the answer once for each
  request.headers.erase("Accept-Encoding");  // and compress it at the slowest setting
  const bool has_body =
      request.has_header("Transfer-Encoding") ||
      (request.has_header("Content-Length") && request.get_header_value("Content-Length") != "0");
  const bool reads_body =
      request.method == "POST" || request.method == "PUT" || request.method == "PATCH";
  // It reads no body of these, and would take it for the next request; of the others it would wait
  // for one that nothing announces.
  if (has_body && !reads_body) connection.close_after_answer();
  if (!has_body && reads_body) {
    request.headers.erase("Content-Length");
    request.headers.emplace("Content-Length", "0");
  }
}

thread_local Connection* current_connection = nullptr;

using AddressOf = int (*)(int, sockaddr*, socklen_t*);

void read_address(AddressOf address_of, socket_t socket, std::string& ip, int& port) {
  sockaddr_storage address{};
  socklen_t length = sizeof(address);
  char host[NI_MAXHOST], service[NI_MAXSERV];
  if (address_of(socket, reinterpret_cast<sockaddr*>(&address), &length) != 0 ||
      getnameinfo(reinterpret_cast<sockaddr*>(&address), length, host, sizeof(host), service,
                  sizeof(service), NI_NUMERICHOST | NI_NUMERICSERV) != 0)
    return;
  ip = host;
  port = std::atoi(service);
}

}  // namespace

Connection::Connection(socket_t socket, const ConnectionLimits& limits)
    : socket_(socket), limits_(limits), buffer_(buffer_bytes) {}

Connection* Connection::current() {
  return current_connection;
}

void Connection::begin_request() {
  deadline_ = std::chrono::steady_clock::now() + limits_.request;
  left_bytes_ = limits_.request_bytes;
}

bool Connection::wait_for(short events, std::chrono::milliseconds patience) const {
  pollfd waited{socket_, events, 0};
  int ready;
  do {
    ready = poll(&waited, 1, static_cast<int>(std::max<int64_t>(patience.count(), 0)));
  } while (ready < 0 && errno == EINTR);
  return ready > 0;
}

std::chrono::milliseconds Connection::left() const {
  return std::chrono::duration_cast<std::chrono::milliseconds>(deadline_ -
                                                               std::chrono::steady_clock::now());
}

bool Connection::closed() const {
  pollfd waited{socket_, POLLRDHUP, 0};
  return poll(&waited, 1, 0) > 0;
}

void Connection::linger() {
  shutdown(socket_, SHUT_WR);
  const auto end = std::chrono::steady_clock::now() + longest_lingering;
  for (size_t bytes = 0; bytes < most_lingering_bytes;) {
    const auto rest =
        std::chrono::ceil<std::chrono::milliseconds>(end - std::chrono::steady_clock::now());
    if (rest.count() <= 0 || !wait_for(POLLIN, rest)) return;
    const ssize_t got = recv(socket_, buffer_.data(), buffer_.size(), MSG_DONTWAIT);
    if (got <= 0) return;
    bytes += static_cast<size_t>(got);
  }
}

bool Connection::is_readable() const {
  return begin_ < end_ || wait_for(POLLIN, left());
}

bool Connection::is_writable() const {
  return wait_for(POLLOUT, limits_.write) && !closed();
}

ssize_t Connection::read(char* data, size_t size) {
  if (left_bytes_ == 0) return -1;
  if (begin_ == end_) {
    if (left().count() <= 0 || !wait_for(POLLIN, left())) return -1;
    ssize_t received;
    do {
      received = recv(socket_, buffer_.data(), buffer_.size(), 0);
    } while (received < 0 && errno == EINTR);
    if (received <= 0) return received;
    begin_ = 0;
    end_ = static_cast<size_t>(received);
  }
  const size_t count = std::min({size, end_ - begin_, left_bytes_});
  left_bytes_ -= count;
  std::memcpy(data, buffer_.data() + begin_, count);
  begin_ += count;
  return static_cast<ssize_t>(count);
}

ssize_t Connection::write(const char* data, size_t size) {
  if (!wait_for(POLLOUT, limits_.write)) return -1;
  ssize_t sent;
  do {
    sent = send(socket_, data, size, MSG_NOSIGNAL | MSG_DONTWAIT);
  } while (sent < 0 && errno == EINTR);
  if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return 0;
  return sent;
}

void Connection::get_remote_ip_and_port(std::string& ip, int& port) const {
  read_address(getpeername, socket_, ip, port);
}

void Connection::get_local_ip_and_port(std::string& ip, int& port) const {
  read_address(getsockname, socket_, ip, port);
}

void ConnectionServer::let_connections_wait() const {
  ::listen(svr_sock_, SOMAXCONN);
}

bool ConnectionServer::process_and_close_socket(socket_t socket) {
  Connection connection(socket, limits_);
  current_connection = &connection;
  const auto ended = [this] { return svr_sock_ == INVALID_SOCKET; };
  bool served = true, closed = false;
  try {
    for (size_t left = keep_alive_max_count_; left > 0 && served && !closed; --left) {
      if (connection.closing() || !connection.wait_for_request(ended)) break;
      connection.begin_request();
      served = process_request(connection, left == 1, closed,
                               [&](httplib::Request& request) { prepare(request, connection); });
    }
  } catch (const std::exception&) {
    served = false;  // no memory for an answer, say: this connection ends, the server does not
  }
  if (connection.closing()) connection.linger();
  current_connection = nullptr;
  shutdown(socket, SHUT_RDWR);
  close(socket);
  return served;
}

}  // namespace sol
