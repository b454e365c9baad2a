// The HTTP interface (docs/http-api.md): routes, limits, errors.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "serving/metrics.h"
#include "serving/scheduler.h"
#include "serving/served_model.h"

namespace sol {

struct HttpOptions {
  std::string host = "127.0.0.1";
  int port = 8080;              // 0: any that is free
  std::string api_key;          // empty: none is asked for
  size_t body_limit = 8 << 20;  // bytes
  int threads = 128;            // requests answered at a time; others wait half a second for one
  double request_seconds = 30;  // a request that is not all there by then is given up
  // One line per request, for logs; may be empty.
  std::function<void(const std::string&)> log;
};

class HttpServer {
 public:
  // `metrics` must outlive it. Throws Error for a key that no client can send.
  HttpServer(const HttpOptions& options, Metrics& metrics);
  ~HttpServer();  // stops

  // Listens and answers, on threads of its own; models are "loading" until serve(). Returns the
  // port. Throws Error when the address cannot be bound.
  int start();
  // Both must live until stop().
  void serve(const ServedModel& served, Scheduler& scheduler);
  // False once listening has ended by itself: the system had no descriptor or memory left.
  bool listening() const;
  // From now on 503: no more requests are taken, those that run go on.
  void refuse();
  // Closes the port and waits for all answers to be sent.
  void stop();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace sol
