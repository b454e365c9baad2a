// One client's connection: a buffered socket whose limits hold for a request as a whole, so that
// nobody keeps a thread by sending a byte now and then, or fills the memory by sending for ever.
#pragma once

#include <httplib.h>
#include <poll.h>

#include <chrono>
#include <vector>

namespace sol {

struct ConnectionLimits {
  std::chrono::milliseconds idle{5000};      // for the first byte of a request
  std::chrono::milliseconds request{30000};  // for all of it
  size_t request_bytes = 8 << 20;            // of all of it
  std::chrono::milliseconds write{30000};    // for each piece that the client is slow to take
};

class Connection final : public httplib::Stream {
 public:
  // `socket` must outlive it.
  Connection(socket_t socket, const ConnectionLimits& limits);

  // The connection that the calling thread answers; null on threads that answer none.
  static Connection* current();

  // Waits for the next request, up to the idle limit. False when none came; `ended` is asked now
  // and then and ends the wait early.
  template <typename Ended>
  bool wait_for_request(const Ended& ended);
  // From now on the request's limits are counted.
  void begin_request();

  // Whether the client has closed its side: one that only stops sending counts as gone, and so does
  // one that has sent more before it left. Never waits.
  bool closed() const;

  // Whether the request went beyond its size, and was cut off there.
  bool over_limit() const { return left_bytes_ == 0; }

  // No further request is taken from this connection.
  void close_after_answer() { closing_ = true; }
  bool closing() const { return closing_; }
  // To be called before the socket is closed: what the client is still sending is read for a while,
  // or the system would reset the connection, and the answer with it.
  void linger();

  bool is_readable() const override;
  bool is_writable() const override;
  ssize_t read(char* data, size_t size) override;
  ssize_t write(const char* data, size_t size) override;
  void get_remote_ip_and_port(std::string& ip, int& port) const override;
  void get_local_ip_and_port(std::string& ip, int& port) const override;
  socket_t socket() const override { return socket_; }

 private:
  bool wait_for(short events, std::chrono::milliseconds patience) const;
  std::chrono::milliseconds left() const;

  socket_t socket_;
  ConnectionLimits limits_;
  std::chrono::steady_clock::time_point deadline_{};
  std::vector<char> buffer_;
  size_t begin_ = 0, end_ = 0;
  size_t left_bytes_ = 0;
  bool closing_ = false;
};

template <typename Ended>
bool Connection::wait_for_request(const Ended& ended) {
  constexpr std::chrono::milliseconds slice{100};
  if (begin_ < end_) return true;
  for (std::chrono::milliseconds waited{0}; waited < limits_.idle; waited += slice) {
    if (ended()) return false;
    if (wait_for(POLLIN, slice)) return true;
  }
  return false;
}

// httplib's server with connections of ours.
class ConnectionServer : public httplib::Server {
 public:
  explicit ConnectionServer(const ConnectionLimits& limits) : limits_(limits) {}

  // httplib lets five connections wait to be accepted; of a crowd that comes at once, the others
  // would have to try again a second later. To be called once the port is bound.
  void let_connections_wait() const;

 private:
  bool process_and_close_socket(socket_t socket) override;
  ConnectionLimits limits_;
};

}  // namespace sol
