#include "serving/connection_server.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <functional>
#include <string>
#include <utility>

#include "base/fail.h"
#include "serving/loopback.h"

namespace sol {
namespace {

// Takes sockets to the reception as they are accepted.
class AtOnce final : public httplib::TaskQueue {
 public:
  // void or, since httplib 0.15, whether there was room.
  using Accepted = decltype(std::declval<httplib::TaskQueue&>().enqueue(std::function<void()>()));
  Accepted enqueue(std::function<void()> task) override {
    task();
    return static_cast<Accepted>(true);
  }
  void shutdown() override {}
};

// How many connections may wait beside those that are answered, `wanted` at most: each takes a
// descriptor, and where none is left nobody is heard. Raises the process's limit as far as it may.
size_t most_waiting(size_t wanted, int workers) {
  constexpr rlim_t others = 32, fewest_waiting = 16;
  const auto answered = static_cast<rlim_t>(workers);
  rlimit files{};
  if (getrlimit(RLIMIT_NOFILE, &files) != 0 || files.rlim_cur == RLIM_INFINITY) return wanted;
  if (const rlim_t all = others + answered + wanted; files.rlim_cur < all) {
    files.rlim_cur = std::min(all, files.rlim_max);
    setrlimit(RLIMIT_NOFILE, &files);
    getrlimit(RLIMIT_NOFILE, &files);
  }
  if (files.rlim_cur < others + answered + fewest_waiting)
    fail(
        "{} connections that are answered at a time take {} open files, but the system allows {}; "
        "raise its limit (ulimit -n), or lower --queue or --batch",
        workers, others + answered + fewest_waiting, files.rlim_cur);
  return std::min<size_t>(wanted, files.rlim_cur - others - answered);
}

const char* reason(int status) {
  switch (status) {
    case 400:
      return "Bad Request";
    case 408:
      return "Request Timeout";
    case 414:
      return "URI Too Long";
    case 417:
      return "Expectation Failed";
    case 431:
      return "Request Header Fields Too Large";
    case 501:
      return "Not Implemented";
    case 503:
      return "Service Unavailable";
    case 505:
      return "HTTP Version Not Supported";
    default:
      return "";
  }
}

}  // namespace

void ConnectionServer::open(int workers, std::function<bool(const RequestHead&)> is_quick,
                            Refused refused) {
  refused_ = std::move(refused);
  new_task_queue = [] { return new AtOnce; };
  // httplib lets five connections wait to be accepted; of a crowd that comes at once, the others
  // would have to try again a second later.
  ::listen(svr_sock_, SOMAXCONN);
  ReceptionOptions options;
  options.workers = workers;
  options.most_waiting = most_waiting(options.most_waiting, workers);
  options.limits = limits_;
  reception_ = std::make_unique<Reception>(
      options,
      Reception::Handlers{
          [this](Connection& connection) { answer(connection); }, std::move(is_quick),
          [this](Connection& connection, const ApiError& error) { refuse(connection, error); }},
      ending_);
}

bool ConnectionServer::bound_to_loopback() const {
  sockaddr_storage address{};
  socklen_t length = sizeof(address);
  return getsockname(svr_sock_, reinterpret_cast<sockaddr*>(&address), &length) == 0 &&
         is_loopback(address);
}

void ConnectionServer::close_connections() {
  ending_.reading = ending_.writing = true;
  if (reception_) reception_->stop();
}

bool ConnectionServer::process_and_close_socket(socket_t socket) {
  reception_->add(socket);
  return true;
}

// Since httplib 0.18 both ends' addresses are arguments, which nobody here asks for.
template <typename Stream>
bool ConnectionServer::process(Stream& connection, bool& closes) {
  if constexpr (requires { process_request(connection, closes, closes, nullptr); }) {
    return process_request(connection, closes, closes, nullptr);
  } else {
    return process_request(connection, "", 0, "", 0, closes, closes, nullptr);
  }
}

void ConnectionServer::answer(Connection& connection) {
  const Connection::Current current(connection);
  bool closes = connection.closes();
  if (!process(connection, closes)) connection.close_after_answer();
}

// By hand, as there is no request that httplib could be shown.
void ConnectionServer::refuse(Connection& connection, const ApiError& error) const {
  const RequestHead& head = connection.head();
  const std::string body = to_text(error.to_json());
  std::string text = fmt::format(
      "HTTP/1.1 {} {}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n"
      "X-Content-Type-Options: nosniff\r\nConnection: close\r\n",
      error.status(), reason(error.status()), body.size());
  if (error.retry_after() > 0) text += fmt::format("Retry-After: {}\r\n", error.retry_after());
  text += "\r\n";
  if (head.method != "HEAD") text += body;
  connection.write(text.data(), text.size());
  refused_(head, error.status());
}

}  // namespace sol
