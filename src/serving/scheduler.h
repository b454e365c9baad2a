// Continuous batching: sequences join and leave between steps, each with its own budget.
#pragma once

#include <condition_variable>
#include <list>
#include <memory>
#include <mutex>
#include <vector>

#include "serving/fair_queue.h"
#include "serving/job.h"
#include "serving/metrics.h"
#include "serving/prefix_cache.h"

namespace sol {

struct SchedulerOptions {
  int batch = 16;               // sequences decoded together, at most
  int queue = 64;               // waiting, at most
  int64_t cache_tokens = 0;     // what running sequences may hold and prefixes be kept in
  int prompt_piece = 512;       // prompt tokens between two steps where nobody waits for one,
  int prompt_piece_busy = 128;  // and where others do
};

// How many tokens prompt and answer may have together in a cache for so many: what a sequence may
// take is reserved in whole blocks.
int64_t longest_sequence(int64_t cache_tokens);

class Scheduler {
 public:
  // All must outlive it.
  Scheduler(const ServedModel& served, const SchedulerOptions& options, Metrics& metrics);

  // Puts all of a request's jobs into the queue, or none: throws ApiError 429 when it has no room
  // for them, 503 when no more are taken, 400 for a job that can never fit the cache and for more
  // than are ever taken, naming `count_field`, what in the request says how many.
  void submit(const std::vector<std::shared_ptr<Job>>& jobs,
              const std::string& count_field = "prompt");

  // Runs jobs on the calling thread until stop().
  void run();
  // No more are taken from now on. Returns when all that were are done, or after `seconds`.
  void drain(double seconds);
  // Ends run(); what is not done by then ends with an error.
  void stop();

 private:
  using Jobs = std::vector<std::shared_ptr<Job>>;

  bool wait_for_work();
  void drop_cancelled();
  void admit();
  FairQueue<std::shared_ptr<Job>>::Verdict judge(const Job& job) const;
  void run_dense();
  void run_steps();
  void retire_finished();
  int64_t reserved_tokens(const Job& job) const;
  int64_t running_tokens() const;
  void keep_prefix(Job& job, bool finished);
  int retry_after() const;
  void publish();

  const ServedModel& served_;
  const SchedulerOptions options_;
  Metrics& metrics_;
  PrefixCache prefixes_;
  std::list<std::shared_ptr<Job>> running_;

  mutable std::mutex mutex_;  // of what follows
  std::condition_variable changed_;
  FairQueue<std::shared_ptr<Job>> queue_;
  size_t in_flight_ = 0;  // queued and running
  bool draining_ = false, stopping_ = false;
  double seconds_per_job_ = 1.0;  // lately
};

}  // namespace sol
