// httplib's server with connections of ours: it accepts them, finds a request's handler and writes
// the answer.
#pragma once

#include <httplib.h>

#include <atomic>
#include <functional>
#include <memory>

#include "serving/reception.h"

namespace sol {

class ConnectionServer : public httplib::Server {
 public:
  using Refused = std::function<void(const RequestHead&, int status)>;

  explicit ConnectionServer(const ConnectionLimits& limits) : limits_(limits) {}

  // To be called once the port is bound, before listen_after_bind(). `is_quick` requests are
  // answered even when all workers are busy; `refused` hears of answers that no handler gave.
  // Throws Error as Reception.
  void open(int workers, std::function<bool(const RequestHead&)> is_quick, Refused refused);
  // Whether only this machine can reach the port that is bound.
  bool bound_to_loopback() const;

  // From now on no request's body is waited for.
  void end_reading() { ending_.reading = true; }
  // After stop(): ends all connections, those whose request is being answered once it is.
  void close_connections();

 private:
  bool process_and_close_socket(socket_t socket) override;
  void answer(Connection& connection);
  template <typename Stream>
  bool process(Stream& connection, bool& closes);
  void refuse(Connection& connection, const ApiError& error) const;

  ConnectionLimits limits_;
  Ending ending_;
  Refused refused_;
  std::unique_ptr<Reception> reception_;
};

}  // namespace sol
