// One client's connection: a buffered socket whose limits hold for a request as a whole, so that
// nobody keeps a thread by sending a byte now and then, or fills the memory by sending for ever.
//
// It reads head and body itself, strictly (request_head.h), and shows httplib a request of its own
// making with neither header fields nor a body: httplib reads more leniently, and what it took for
// the end of a request could be in the middle of one.
#pragma once

#include <httplib.h>

#include <atomic>
#include <chrono>
#include <optional>
#include <string>

#include "serving/api_error.h"
#include "serving/request_head.h"

namespace sol {

struct ConnectionLimits {
  std::chrono::milliseconds idle{5000};      // for the first byte of a request
  std::chrono::milliseconds request{30000};  // for all of it
  // What a client may be waited for while it takes an answer, in all: so long, and as long as what
  // it has taken needs at the least rate. One that takes a byte now and then would hold a thread
  // for ever.
  std::chrono::milliseconds write{30000};
  int64_t least_rate = 1024;  // bytes a second
};

// How far the server's end has come.
struct Ending {
  std::atomic<bool> reading{false};  // bodies that are not there yet are not waited for
  std::atomic<bool> writing{false};  // a client that is slow to take its answer has a second left
};

class Connection final : public httplib::Stream {
 public:
  using Clock = std::chrono::steady_clock;

  // Closes `socket` in the end. `ending` must outlive it.
  Connection(socket_t socket, const ConnectionLimits& limits, const Ending& ending);
  ~Connection() override;

  // The connection that the calling thread answers; null on threads that answer none.
  static Connection* current();
  class Current;

  // Between requests: takes in what has arrived, without waiting.
  enum class Head { awaited, complete, never };  // never: the client is gone
  Head receive_head();                           // throws ApiError for what is no request
  // When to give up the head that is awaited.
  Clock::time_point deadline() const { return deadline_; }
  // Nothing of the next request has come.
  bool idle() const { return buffer_.size() == begin_; }

  // Of the request that is being answered; empty where it is none.
  const RequestHead& head() const { return head_; }
  // Waits for the request's body. Throws ApiError: 400, 408 (it took too long), 413 (it has more
  // than `limit` bytes; at once where it says so itself), 503 (the server ends).
  std::string read_body(size_t limit);
  // Whether this connection ends with the answer: the client asked for it, or the body has not been
  // read, and what follows would be taken for a request.
  bool closes() const { return head_.close || closing_ || !body_is_read_; }
  void close_after_answer() { closing_ = true; }
  // The client is gone: nothing is said any more.
  void give_up() { broken_ = closing_ = true; }
  // Makes ready for the next request.
  void end_request();

  // Whether the client has closed its side: one that only stops sending counts as gone, and so does
  // one that has sent more before it left. Never waits.
  bool closed() const;

  // Writing gives up at once where the client is slow to take what there is.
  void never_wait_to_write() { limits_.write = {}; }

  // A socket that is closed while the client still sends is reset, and the answer with it. So what
  // comes is read and forgotten for a while.
  void begin_lingering();
  bool lingers();  // takes in what is there; false: it may be closed

  bool is_readable() const override { return !shown_.empty(); }
  bool is_writable() const override;
  ssize_t read(char* data, size_t size) override;
  ssize_t write(const char* data, size_t size) override;             // all of it, or -1
  void get_remote_ip_and_port(std::string&, int&) const override {}  // nobody asks
  void get_local_ip_and_port(std::string&, int&) const override {}
  socket_t socket() const override { return socket_; }

 private:
  bool receive();  // appends to the buffer; false: there is nothing, `gone_` says whether for ever
  void read_piece();
  std::string_view unread() const { return std::string_view(buffer_).substr(begin_); }
  void drop(size_t count);
  std::chrono::milliseconds patience_left() const;
  bool wait_to_write() const;
  bool write_all(const char* data, size_t size) const;

  socket_t socket_;
  ConnectionLimits limits_;
  const Ending& ending_;
  Clock::time_point deadline_;
  std::string buffer_;  // from begin_ on not used yet
  size_t begin_ = 0, scanned_ = 0;
  RequestHead head_;
  std::string shown_;  // what httplib has not read yet of the request that it is shown
  bool begun_ = false, body_is_read_ = true, closing_ = false, gone_ = false, broken_ = false;
  int empty_lines_ = 0;                                 // before the request
  mutable Clock::duration waited_to_write_{};           // for the client to take the answer
  mutable int64_t written_ = 0;                         // bytes of it
  mutable std::optional<Clock::time_point> last_word_;  // by when, once the server ends
  size_t lingering_bytes_ = 0;
};

// Makes a connection the calling thread's current one.
class Connection::Current {
 public:
  explicit Current(Connection& connection);
  ~Current();
  Current(const Current&) = delete;
  Current& operator=(const Current&) = delete;
};

}  // namespace sol
