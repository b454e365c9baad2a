// Signs of life among the processes of a run, so that none of them waits for one that is gone.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

namespace sol {

// What the signs go through: a store of small values that all processes share, in rank 0's process.
// Every call may throw when the store is gone, and must where no answer comes within
// LivenessOptions::silence_seconds.
class SharedBoard {
 public:
  virtual ~SharedBoard() = default;
  virtual void set(const std::string& key, const std::string& value) = 0;
  virtual bool has(const std::string& key) = 0;
  virtual std::string get(const std::string& key) = 0;  // of a key that it has
};

struct LivenessOptions {
  double interval_seconds = 1;  // of signs of life
  double silence_seconds = 30;
  double news_seconds = 0.25;  // of looking whether somebody has failed
};

// A thread that writes "alive/RANK" every interval and watches the others' and, more often,
// "failure".
class Liveness {
 public:
  Liveness(std::unique_ptr<SharedBoard> board, int rank, int size, const LivenessOptions& options);
  // Says that this rank is done, which is no failure. Rank 0, whose process holds the board, waits
  // for the others to be done as well, or gone; where one has failed, until they have read why.
  ~Liveness();
  Liveness(const Liveness&) = delete;
  Liveness& operator=(const Liveness&) = delete;

  std::stop_token failure() const { return failure_.get_token(); }
  std::string why() const;  // of a failure; empty where there is none

  // The first report of all ranks counts. Waits, a second at most, until the others have read it.
  void report(const std::string& why) noexcept;

  // Looks for another rank's report now, and until `seconds` have passed or why() says one.
  void look_for_report(double seconds) noexcept;

 private:
  void watch(std::stop_token stop);
  void read_failure();
  void wait_for_readers(std::unique_lock<std::mutex>& lock);  // of a failure; a second at most
  void look_around();
  void fail_with(const std::string& why);

  std::unique_ptr<SharedBoard> board_;
  const int rank_, size_;
  const LivenessOptions options_;
  struct Sign {
    std::string last;
    double seen = 0;  // seconds since start
    bool done = false;
  };
  std::vector<Sign> signs_;
  long beats_ = 0;
  mutable std::mutex mutex_;  // of the board and all below
  std::condition_variable_any changed_;
  std::string why_;
  bool reported_ = false;
  std::stop_source failure_;
  std::jthread thread_;
};

}  // namespace sol
