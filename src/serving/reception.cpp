#include "serving/reception.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>

#include "base/fail.h"

namespace sol {
namespace {

constexpr std::chrono::milliseconds longest_wait{1000};

}  // namespace

Reception::Reception(const ReceptionOptions& options, Handlers handlers, const Ending& ending)
    : options_(options),
      handlers_(std::move(handlers)),
      ending_(ending),
      wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (wake_ < 0) fail("cannot wait for connections: {}", std::strerror(errno));
  try {
    thread_ = std::thread([this] { look_after(); });
    while (static_cast<int>(workers_.size()) < options_.workers)
      workers_.emplace_back([this] { work(); });
  } catch (const std::exception&) {  // of the system, or no memory for one more
    const size_t begun = workers_.size();
    stop_threads();
    ::close(wake_);
    fail(
        "the system gave only {} of the {} threads that answer connections; raise its limit of "
        "processes or of memory (ulimit -u, ulimit -v, or the container's), or lower --queue or "
        "--batch",
        begun, options_.workers);
  }
}

Reception::~Reception() {
  stop();
  ::close(wake_);
}

void Reception::stop() {
  stop_threads();
  guests_.clear();
  arriving_.clear();
  offers_.clear();
}

void Reception::stop_threads() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake();
  offered_.notify_all();
  if (thread_.joinable()) thread_.join();
  for (std::thread& worker : workers_) worker.join();
  workers_.clear();
}

void Reception::wake() const {
  const uint64_t one = 1;
  [[maybe_unused]] const auto written = ::write(wake_, &one, sizeof(one));
}

void Reception::add(socket_t socket) {
  std::unique_ptr<Connection> connection;
  try {
    connection = std::make_unique<Connection>(socket, options_.limits, ending_);
    const std::lock_guard lock(mutex_);
    arriving_.push_back(std::move(connection));
  } catch (const std::bad_alloc&) {
    if (!connection) ::close(socket);
    return;  // this connection ends, the server does not
  }
  wake();
}

// --- The workers ---

void Reception::work() {
  while (true) {
    std::unique_ptr<Connection> connection;
    {
      std::unique_lock lock(mutex_);
      offered_.wait(lock, [this] { return stopping_ || !offers_.empty(); });
      if (offers_.empty()) return;
      connection = std::move(offers_.front());
      offers_.pop_front();
    }
    try {
      handlers_.answer(*connection);
    } catch (const std::exception&) {
      connection.reset();  // no memory for an answer, say: it ends, the server does not
    }
    give_back(std::move(connection));
  }
}

void Reception::give_back(std::unique_ptr<Connection> connection) {
  try {
    const std::lock_guard lock(mutex_);
    --busy_;
    if (connection) arriving_.push_back(std::move(connection));
  } catch (const std::bad_alloc&) {
  }
  wake();
}

// --- The reception's own thread ---

void Reception::look_after() {
  while (true) {
    try {
      {
        const std::lock_guard lock(mutex_);
        if (stopping_) return;
      }
      let_in();
      attend_all();
      wait_for_something();
    } catch (const std::bad_alloc&) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
  }
}

void Reception::let_in() {
  std::vector<std::unique_ptr<Connection>> arriving;
  {
    const std::lock_guard lock(mutex_);
    arriving.swap(arriving_);
  }
  guests_.reserve(guests_.size() + arriving.size());
  for (auto& connection : arriving) {
    Guest guest;
    guest.connection = std::move(connection);
    if (guest.connection->closes() && !linger(guest)) continue;
    if (guest.state == State::awaited) guest.connection->end_request();
    guests_.push_back(std::move(guest));
  }
  if (guests_.size() <= options_.most_waiting) return;
  // Whoever has waited longest has had the best chance to say something; those who have said it are
  // answered.
  size_t surplus = guests_.size() - options_.most_waiting;
  std::erase_if(guests_, [&](const Guest& guest) {
    if (surplus == 0 || guest.state == State::ready) return false;
    --surplus;
    return true;
  });
}

void Reception::attend_all() {
  size_t staying = 0;
  for (Guest& guest : guests_)
    if (attend(guest) && &guest != &guests_[staying++]) guests_[staying - 1] = std::move(guest);
  guests_.erase(guests_.begin() + static_cast<std::ptrdiff_t>(staying), guests_.end());
}

bool Reception::attend(Guest& guest) {
  try {
    switch (guest.state) {
      case State::awaited:
        return receive(guest);
      case State::ready:
        return hand_over(guest);
      case State::lingering:
        return guest.connection->lingers();
    }
  } catch (const std::exception&) {
  }
  return false;  // no memory for it
}

bool Reception::receive(Guest& guest) {
  Connection& connection = *guest.connection;
  try {
    // Most of those that wait have nothing to say at any moment.
    if (guest.readable) switch (connection.receive_head()) {
        case Connection::Head::never:
          return false;
        case Connection::Head::complete:
          guest.state = State::ready;
          guest.deadline = Clock::now() + options_.patience;
          return hand_over(guest);
        case Connection::Head::awaited:
          break;
      }
  } catch (const ApiError& error) {
    return refuse(guest, error);
  }
  if (Clock::now() < connection.deadline()) return true;
  if (connection.idle()) return false;
  return refuse(guest, too_slow());
}

bool Reception::hand_over(Guest& guest) {
  {
    const std::lock_guard lock(mutex_);
    if (busy_ < options_.workers) {
      offers_.push_back(std::move(guest.connection));
      ++busy_;
      offered_.notify_one();
      return false;
    }
  }
  Connection& connection = *guest.connection;
  if (handlers_.is_quick(connection.head())) {
    connection.never_wait_to_write();
    connection.close_after_answer();
    handlers_.answer(connection);
    return linger(guest);
  }
  if (Clock::now() < guest.deadline) return true;
  ApiError busy(503, "server_error", "busy",
                "all of the server's threads are at work; try again soon");
  return refuse(guest, busy.set_retry_after(1));
}

bool Reception::refuse(Guest& guest, const ApiError& error) {
  guest.connection->never_wait_to_write();
  guest.connection->close_after_answer();
  handlers_.refuse(*guest.connection, error);
  return linger(guest);
}

bool Reception::linger(Guest& guest) {
  guest.state = State::lingering;
  guest.connection->begin_lingering();
  return guest.connection->lingers();
}

void Reception::wait_for_something() {
  std::vector<pollfd> waited{{wake_, POLLIN, 0}};
  waited.reserve(1 + guests_.size());
  const auto now = Clock::now();
  auto patience = longest_wait;
  for (const Guest& guest : guests_) {
    const bool ready = guest.state == State::ready;
    const auto deadline = ready ? guest.deadline : guest.connection->deadline();
    patience = std::min(patience, std::chrono::ceil<std::chrono::milliseconds>(deadline - now));
    // What follows a whole head is for later; poll() leaves negative descriptors out.
    waited.push_back({ready ? -1 : guest.connection->socket(), POLLIN, 0});
  }
  poll(waited.data(), waited.size(), static_cast<int>(std::max<int64_t>(patience.count(), 0)));
  for (size_t i = 0; i < guests_.size(); ++i) guests_[i].readable = waited[i + 1].revents != 0;
  uint64_t count;
  [[maybe_unused]] const auto taken = ::read(wake_, &count, sizeof(count));
}

}  // namespace sol
