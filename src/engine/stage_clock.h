// Where a forward pass spends its time, for benchmarks.
#pragma once

#include <chrono>

namespace sol {

// Wall seconds by what was computed.
struct StageTimes {
  double projections = 0;   // norms, q, k, v, rotary, cache writes, o
  double page_scoring = 0;  // κ: scores and choice of pages
  double attention = 0;     // keys and values
  double mlp = 0;
  double head = 0;  // final norm, vocabulary
  double total() const { return projections + page_scoring + attention + mlp + head; }
};

// Adds the time between two calls to the stage that was entered first. Does nothing, and asks no
// clock, until it has somewhere to add to.
class StageClock {
 public:
  using Stage = double StageTimes::*;

  void report_to(StageTimes* times) { times_ = times; }
  void enter(Stage stage) {
    if (!times_) return;
    const auto now = std::chrono::steady_clock::now();
    if (running_) times_->*running_ += std::chrono::duration<double>(now - since_).count();
    running_ = stage;
    since_ = now;
  }
  void stop() { enter(nullptr); }

 private:
  StageTimes* times_ = nullptr;
  Stage running_ = nullptr;
  std::chrono::steady_clock::time_point since_;
};

}  // namespace sol
