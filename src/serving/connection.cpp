#include "serving/connection.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "serving/chunked_decoder.h"

namespace sol {
namespace {

constexpr size_t piece_bytes = 16 * 1024;
constexpr std::chrono::seconds longest_lingering{2};
constexpr size_t most_lingering_bytes = 16 << 20;
// How often one that waits looks whether the server ends.
constexpr std::chrono::milliseconds slice{100};
constexpr std::chrono::seconds last_write{1};
constexpr int most_empty_lines = 8;

thread_local Connection* current_connection = nullptr;

bool wait_for(socket_t socket, short events, std::chrono::milliseconds patience) {
  pollfd waited{socket, events, 0};
  int ready;
  do {
    ready = poll(&waited, 1, static_cast<int>(std::max<int64_t>(patience.count(), 0)));
  } while (ready < 0 && errno == EINTR);
  return ready > 0;
}

ApiError too_large(size_t limit) {
  return {413, "invalid_request_error", "body_too_large",
          fmt::format("a request's body may have {} bytes", limit)};
}

}  // namespace

Connection::Connection(socket_t socket, const ConnectionLimits& limits, const Ending& ending)
    : socket_(socket), limits_(limits), ending_(ending), deadline_(Clock::now() + limits.idle) {}

Connection::~Connection() {
  shutdown(socket_, SHUT_RDWR);
  ::close(socket_);
}

Connection* Connection::current() {
  return current_connection;
}

Connection::Current::Current(Connection& connection) {
  current_connection = &connection;
}

Connection::Current::~Current() {
  current_connection = nullptr;
}

bool Connection::receive() {
  const size_t before = buffer_.size();
  buffer_.resize(before + piece_bytes);
  ssize_t received;
  do {
    received = recv(socket_, buffer_.data() + before, piece_bytes, MSG_DONTWAIT);
  } while (received < 0 && errno == EINTR);
  buffer_.resize(before + static_cast<size_t>(std::max<ssize_t>(received, 0)));
  gone_ = received == 0 || (received < 0 && errno != EAGAIN && errno != EWOULDBLOCK);
  return received > 0;
}

void Connection::drop(size_t count) {
  begin_ += count;
  if (begin_ < buffer_.size()) return;
  begin_ = 0;
  std::string().swap(buffer_);  // one that waits for a request takes no memory
}

Connection::Head Connection::receive_head() {
  do {
    // Empty lines before a request are no part of it; endless ones are no request.
    while (unread().starts_with("\r\n")) {
      if (++empty_lines_ > most_empty_lines) throw malformed("it begins with empty lines");
      drop(2);
    }
    if (unread() == "\r") continue;
    if (!idle() && !begun_) {
      begun_ = true;
      deadline_ = Clock::now() + limits_.request;
    }
    if (const auto size = find_head_end(unread(), scanned_)) {
      head_ = parse_request_head(unread().substr(0, *size));
      drop(*size);
      body_is_read_ = !head_.has_body();
      // A length of its own for those methods for which httplib would wait for the end otherwise.
      shown_ = fmt::format("{} {} HTTP/1.1\r\nContent-Length: 0\r\n\r\n", head_.method, head_.path);
      return Head::complete;
    }
  } while (receive());
  if (idle()) drop(0);
  return gone_ ? Head::never : Head::awaited;
}

void Connection::end_request() {
  head_ = {};
  shown_.clear();
  buffer_.erase(0, begin_);
  begin_ = scanned_ = 0;
  empty_lines_ = 0;
  begun_ = false;
  body_is_read_ = true;
  waited_to_write_ = {};
  written_ = 0;
  deadline_ = Clock::now() + limits_.idle;
}

// Something of the body.
void Connection::read_piece() {
  while (!receive()) {
    if (gone_)
      throw ApiError(400, "invalid_request_error", "bad_request",
                     "the connection ended within the request's body");
    if (ending_.reading) throw shutting_down();
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline_ - Clock::now());
    if (left.count() <= 0) throw too_slow();
    wait_for(socket_, POLLIN, std::min(slice, left));
  }
}

std::string Connection::read_body(size_t limit) {
  std::string body;
  if (body_is_read_) return body;
  if (head_.content_length.value_or(0) > limit) throw too_large(limit);
  if (head_.expects_continue && unread().empty()) {
    constexpr std::string_view go_on = "HTTP/1.1 100 Continue\r\n\r\n";
    write(go_on.data(), go_on.size());
  }
  if (!head_.chunked) body.reserve(*head_.content_length);
  ChunkedDecoder chunks;
  const auto complete = [&] {
    return head_.chunked ? chunks.done() : body.size() == *head_.content_length;
  };
  while (!complete()) {
    if (unread().empty()) read_piece();
    if (head_.chunked) {
      drop(chunks.take(unread(), body));
    } else {
      const std::string_view piece = unread().substr(0, *head_.content_length - body.size());
      body.append(piece);
      drop(piece.size());
    }
    if (body.size() > limit) throw too_large(limit);
  }
  body_is_read_ = true;
  return body;
}

bool Connection::closed() const {
  return wait_for(socket_, POLLRDHUP, {});
}

void Connection::begin_lingering() {
  std::string().swap(buffer_);
  begin_ = 0;
  shutdown(socket_, SHUT_WR);
  deadline_ = Clock::now() + longest_lingering;
}

bool Connection::lingers() {
  if (Clock::now() >= deadline_) return false;
  while (receive()) {
    lingering_bytes_ += buffer_.size();
    buffer_.clear();
    if (lingering_bytes_ > most_lingering_bytes) return false;
  }
  return !gone_;
}

ssize_t Connection::read(char* data, size_t size) {
  const size_t count = std::min(size, shown_.size());
  std::memcpy(data, shown_.data(), count);
  shown_.erase(0, count);
  return static_cast<ssize_t>(count);
}

std::chrono::milliseconds Connection::patience_left() const {
  using std::chrono::milliseconds;
  if (limits_.write == milliseconds{}) return {};
  const milliseconds earned(1000 * written_ / limits_.least_rate);
  return std::max(milliseconds{},
                  limits_.write + earned - std::chrono::ceil<milliseconds>(waited_to_write_));
}

bool Connection::wait_to_write() const {
  const auto begin = Clock::now();
  const std::chrono::milliseconds patience = patience_left();
  while (!wait_for(socket_, POLLOUT, std::min(slice, patience))) {
    const auto now = Clock::now();
    if (now - begin >= patience) return false;
    if (!ending_.writing) continue;
    // For all that is left to say, not for each piece of it.
    if (!last_word_) last_word_ = now + last_write;
    if (now >= *last_word_) return false;
  }
  waited_to_write_ += Clock::now() - begin;
  return true;
}

bool Connection::is_writable() const {
  return wait_to_write() && !closed();
}

ssize_t Connection::write(const char* data, size_t size) {
  // httplib goes on with the body of an answer whose head it could not write.
  if (broken_) return -1;
  const bool written = write_all(data, size);
  if (!written) broken_ = closing_ = true;
  return written ? static_cast<ssize_t>(size) : -1;
}

bool Connection::write_all(const char* data, size_t size) const {
  for (size_t done = 0; done < size;) {
    const ssize_t sent = send(socket_, data + done, size - done, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent >= 0) {
      done += static_cast<size_t>(sent);
      written_ += sent;
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      if (!wait_to_write()) return false;
    } else if (errno != EINTR) {
      return false;
    }
  }
  return true;
}

}  // namespace sol
