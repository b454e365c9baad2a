// Where connections wait while they need no thread: for a request's head to arrive, and for the
// client to have read the last answer. One thread looks after all of them, and a connection is
// given to one of the workers once there is a head to answer.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "serving/connection.h"

namespace sol {

struct ReceptionOptions {
  int workers = 128;
  size_t most_waiting = 1024;  // connections; then the one that came first is closed
  // A request for which no worker is free is refused after so long.
  std::chrono::milliseconds patience{500};
  ConnectionLimits limits;
};

class Reception {
 public:
  struct Handlers {
    // Answers the request whose head has arrived; on a worker, or on the reception's own thread
    // where `is_quick` and no worker is free. The connection's `closes()` says whether it stays.
    std::function<void(Connection&)> answer;
    std::function<bool(const RequestHead&)> is_quick;
    // Answers what is no request, or cannot be taken now.
    std::function<void(Connection&, const ApiError&)> refuse;
  };
  // `ending` must outlive it. Throws Error when the system does not allow that many threads.
  Reception(const ReceptionOptions& options, Handlers handlers, const Ending& ending);
  ~Reception();

  // Takes the socket over. Any thread may call it.
  void add(socket_t socket);
  // Closes the connections of which no request is being answered, and waits for the others.
  void stop();

 private:
  using Clock = Connection::Clock;
  enum class State { awaited, ready, lingering };
  struct Guest {
    std::unique_ptr<Connection> connection;
    State state = State::awaited;
    Clock::time_point deadline{};  // of one that is ready, for a worker
    bool readable = true;
  };

  void look_after();
  void work();
  void let_in();
  void attend_all();
  bool attend(Guest& guest);  // false: it may go
  bool receive(Guest& guest);
  bool hand_over(Guest& guest);
  bool refuse(Guest& guest, const ApiError& error);
  bool linger(Guest& guest);
  void give_back(std::unique_ptr<Connection> connection);
  void wait_for_something();
  void wake() const;
  void stop_threads();

  const ReceptionOptions options_;
  const Handlers handlers_;
  const Ending& ending_;
  int wake_ = -1;
  std::vector<Guest> guests_;  // the reception's thread only

  std::mutex mutex_;
  std::condition_variable offered_;
  std::vector<std::unique_ptr<Connection>> arriving_;
  std::deque<std::unique_ptr<Connection>> offers_;
  int busy_ = 0;  // workers that answer or are about to
  bool stopping_ = false;

  std::thread thread_;
  std::vector<std::thread> workers_;
};

}  // namespace sol
