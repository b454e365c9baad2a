// A request on its way through the scheduler.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "serving/completion_response.h"
#include "serving/scheduler.h"

namespace sol {

class RunningRequest {
 public:
  // Puts its jobs into the queue. `served`, `scheduler` and `count`, which counts those that exist,
  // must outlive it. Throws ApiError as Scheduler::submit.
  RunningRequest(CompletionRequest request, const ServedModel& served, Scheduler& scheduler,
                 std::atomic<int>& count);
  // Whatever becomes of the connection, the jobs end with it.
  ~RunningRequest();
  RunningRequest(const RunningRequest&) = delete;
  RunningRequest& operator=(const RunningRequest&) = delete;

  // Takes in what arrives within `patience`. Returns the events that it makes when streaming, each
  // a JSON text. Throws ApiError for a sequence that broke.
  std::vector<std::string> wait(std::chrono::milliseconds patience);
  CompletionResponse& response() { return response_; }

 private:
  const CompletionRequest request_;
  std::shared_ptr<Outbox> outbox_;
  CompletionResponse response_;
  std::vector<std::shared_ptr<Job>> jobs_;
  std::atomic<int>& count_;
};

// The text of a stream as server-sent events, piece by piece.
class EventStream {
 public:
  // `silence`: between two signs of life of a stream that has nothing to say.
  explicit EventStream(std::shared_ptr<RunningRequest> running,
                       std::chrono::milliseconds silence = std::chrono::seconds(10))
      : running_(std::move(running)), silence_(silence) {}

  // What there is to send after up to `patience`; may be empty. Never throws: whatever breaks is
  // the stream's last event.
  std::string next(std::chrono::milliseconds patience);
  bool ended() const { return ended_; }

 private:
  std::shared_ptr<RunningRequest> running_;
  std::chrono::milliseconds silence_;
  std::chrono::steady_clock::time_point last_sent_ = std::chrono::steady_clock::now();
  bool ended_ = false;
};

}  // namespace sol
