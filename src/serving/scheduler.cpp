#include "serving/scheduler.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <exception>

#include "base/threads.h"
#include "serving/api_error.h"

namespace sol {
namespace {

// Reservations are rounded up to whole cache blocks, or more.
constexpr int64_t reservation_grain = 64;
// A prompt waits for another one that is being computed when it would save so many tokens.
constexpr int worth_waiting_for = 32;

// Each that has not ended. In handlers: memory may have run out, so none is taken.
template <typename Jobs>
void break_off_all(const Jobs& jobs, const std::exception_ptr& error) noexcept {
  for (const auto& job : jobs)
    if (!job->finished()) job->break_off(error);
}

int most_shared(const Job& job) {
  return static_cast<int>(job.request().prompt.size()) - 2;
}

}  // namespace

int64_t longest_sequence(int64_t cache_tokens) {
  return cache_tokens / reservation_grain * reservation_grain;
}

Scheduler::Scheduler(const ServedModel& served, const SchedulerOptions& options, Metrics& metrics)
    : served_(served), options_(options), metrics_(metrics), prefixes_(*served.model) {
  metrics_.name_actions(served.space());
}

void Scheduler::submit(const std::vector<std::shared_ptr<Job>>& jobs,
                       const std::string& count_field) {
  for (const auto& job : jobs)
    if (reserved_tokens(*job) > options_.cache_tokens)
      throw ApiError(400, "invalid_request_error", "context_length_exceeded",
                     fmt::format("prompt and answer have up to {} tokens, but the server's cache "
                                 "holds {}; lower max_tokens",
                                 job->most_tokens(), options_.cache_tokens),
                     "max_tokens");
  const size_t most = static_cast<size_t>(options_.queue) + static_cast<size_t>(options_.batch);
  if (jobs.size() > most)
    throw ApiError(
        400, "invalid_request_error", "too_many_prompts",
        fmt::format("{}: the request has {} sequences, but the server takes {} at a time",
                    count_field, jobs.size(), most),
        count_field);
  {
    const std::lock_guard lock(mutex_);
    if (draining_ || stopping_) throw shutting_down();
    if (in_flight_ + jobs.size() > most) {
      throw ApiError(429, "rate_limit_error", "queue_full",
                     fmt::format("{} sequences are waiting or running, and the server takes {}; "
                                 "come back later",
                                 in_flight_, most))
          .set_retry_after(retry_after());
    }
    try {
      for (const auto& job : jobs) queue_.push(job->request().party, job);
    } catch (...) {  // nobody would wait for those that are in the queue by now
      queue_.remove_if(
          [&](const auto& queued) { return std::ranges::find(jobs, queued) != jobs.end(); });
      throw;
    }
    in_flight_ += jobs.size();
  }
  changed_.notify_all();
}

int Scheduler::retry_after() const {
  const double seconds =
      static_cast<double>(in_flight_) * seconds_per_job_ / static_cast<double>(options_.batch);
  return std::clamp(static_cast<int>(std::ceil(seconds)), 1, 60);
}

void Scheduler::run() {
  const std::exception_ptr ending = std::make_exception_ptr(shutting_down());
  while (wait_for_work()) {
    try {
      drop_cancelled();
      admit();
      run_dense();
      run_steps();
      retire_finished();
      publish();
    } catch (...) {  // memory has run out, say: the server goes on
      prefixes_.shrink_to(0);
      break_off_all(running_, std::current_exception());
    }
  }
  break_off_all(running_, ending);
  {
    const std::lock_guard lock(mutex_);
    while (auto job = queue_.pop([](const auto&) { return decltype(queue_)::Verdict::take; })) {
      (*job)->break_off(ending);
      --in_flight_;
    }
  }
  retire_finished();
  prefixes_.shrink_to(0);
  publish();
}

bool Scheduler::wait_for_work() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return stopping_ || !queue_.empty() || !running_.empty(); });
  return !stopping_;
}

void Scheduler::drain(double seconds) {
  std::unique_lock lock(mutex_);
  draining_ = true;
  changed_.wait_for(lock, std::chrono::duration<double>(seconds), [&] { return in_flight_ == 0; });
}

void Scheduler::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
}

void Scheduler::drop_cancelled() {
  for (const auto& job : running_)
    if (job->cancelled() && !job->finished()) job->end(FinishReason::cancelled);
  const std::lock_guard lock(mutex_);
  in_flight_ -= queue_.remove_if([](const std::shared_ptr<Job>& job) {
    if (!job->cancelled()) return false;
    job->end(FinishReason::cancelled);
    return true;
  });
}

int64_t Scheduler::reserved_tokens(const Job& job) const {
  return (job.most_tokens() + reservation_grain - 1) / reservation_grain * reservation_grain;
}

int64_t Scheduler::running_tokens() const {
  int64_t tokens = 0;
  for (const auto& job : running_) tokens += reserved_tokens(*job);
  return tokens;
}

FairQueue<std::shared_ptr<Job>>::Verdict Scheduler::judge(const Job& job) const {
  using Verdict = FairQueue<std::shared_ptr<Job>>::Verdict;
  // Nobody overtakes: a long prompt would wait for ever.
  if (running_tokens() + reserved_tokens(job) > options_.cache_tokens) return Verdict::stop;
  if (job.request().score_prompt) return Verdict::take;
  const int known = prefixes_.match(job.request().prompt, most_shared(job));
  for (const auto& other : running_) {
    if (other->finished() || !other->in_prompt() || other->dense_due() == 0) continue;
    const int common =
        std::min(common_prefix(other->request().prompt, job.request().prompt), most_shared(job));
    if (common >= known + worth_waiting_for) return Verdict::later;
  }
  return Verdict::take;
}

void Scheduler::admit() {
  while (running_.size() < static_cast<size_t>(options_.batch)) {
    decltype(running_) place(1);  // before it leaves the queue: between the two it must not be lost
    size_t together = running_.size() + 1;
    {
      const std::lock_guard lock(mutex_);
      auto next = queue_.pop([&](const auto& candidate) { return judge(*candidate); });
      if (!next) return;
      place.front() = std::move(*next);
      // Those behind it follow at once, or as soon as a prompt that they share is there.
      together = std::min(together + queue_.size(), static_cast<size_t>(options_.batch));
    }
    const std::shared_ptr<Job> job = place.front();
    prefixes_.shrink_to(options_.cache_tokens - running_tokens() - reserved_tokens(*job));
    running_.splice(running_.end(), place);
    try {
      // Scores of a prompt come from the pass over it.
      std::unique_ptr<Sequence> cached =
          job->request().score_prompt ? nullptr
                                      : prefixes_.share(job->request().prompt, most_shared(*job));
      const int shared = cached ? cached->length() : 0;
      job->begin(std::move(cached), static_cast<int>(together));
      metrics_.count_prompt(static_cast<int>(job->request().prompt.size()), shared);
    } catch (...) {
      job->break_off(std::current_exception());
    }
  }
}

void Scheduler::run_dense() {
  int prompts = 0;
  bool someone_waits = false;
  for (const auto& job : running_) {
    if (job->finished()) continue;
    if (job->in_prompt() && job->dense_due() > 0)
      ++prompts;
    else
      someone_waits = true;
  }
  int left = someone_waits ? options_.prompt_piece_busy : options_.prompt_piece;
  // A short prompt does not wait for the end of a long one.
  const int share = prompts > 0 ? std::max(16, left / prompts) : 0;

  Jobs jobs;
  std::vector<ExtendItem> items;
  for (const auto& job : running_) {
    if (job->finished() || job->dense_due() == 0) continue;
    const int count = job->piece(std::min(share, left));
    if (count == 0) continue;
    if (job->in_prompt()) left -= count;
    items.push_back(job->next_dense(count));
    jobs.push_back(job);
  }
  if (items.empty()) return;
  const Stopwatch stopwatch;
  try {
    served_.model->extend(items);
  } catch (...) {
    return break_off_all(jobs, std::current_exception());
  }
  const double seconds = stopwatch.seconds();
  metrics_.count_times(seconds, 0, 0);
  for (const auto& job : jobs) {
    try {
      job->complete_dense(seconds);
      if (job->in_prompt() && job->dense_due() == 0) keep_prefix(*job, false);
    } catch (...) {
      job->break_off(std::current_exception());
    }
  }
}

// Memory that runs out here costs other requests time, not this one its answer.
void Scheduler::keep_prefix(Job& job, bool finished) {
  const Generation& generation = job.generation();
  const bool exact = served_.deterministic || !finished;
  const int64_t room = options_.cache_tokens - running_tokens();
  const int length = generation.dense_length(exact);
  if (length > room) return;
  try {
    prefixes_.add(generation.tokens().first(static_cast<size_t>(length)),
                  generation.fork_dense(exact));
    prefixes_.shrink_to(room);
  } catch (const std::exception&) {
    prefixes_.shrink_to(0);
  }
}

void Scheduler::run_steps() {
  Jobs jobs;
  std::vector<ControlledStep> steps;
  jobs.reserve(running_.size());
  steps.reserve(running_.size());
  for (const auto& job : running_) {
    if (job->finished() || job->dense_due() > 0) continue;
    try {
      steps.push_back(job->next_step(static_cast<int>(running_.size())));
      jobs.push_back(job);
    } catch (...) {
      job->break_off(std::current_exception());
    }
  }
  if (steps.empty()) return;
  StepTimes times;
  try {
    decode_step(*served_.model, steps, &times);
  } catch (...) {
    return break_off_all(jobs, std::current_exception());
  }
  metrics_.count_times(0, times.policy_seconds, times.model_seconds);

  // Drawing from a large vocabulary and scoring it take longer than a thread's wake-up.
  std::vector<std::exception_ptr> errors(jobs.size());
  parallel_for(static_cast<int64_t>(jobs.size()), [&](int64_t i) {
    try {
      jobs[static_cast<size_t>(i)]->complete_step(times.policy_seconds);
    } catch (...) {
      errors[static_cast<size_t>(i)] = std::current_exception();
    }
  });
  for (size_t i = 0; i < jobs.size(); ++i) {
    if (errors[i]) {
      jobs[i]->break_off(errors[i]);
      continue;
    }
    const GenerationResult& result = jobs[i]->generation().result();
    const bool first = result.steps == 1;
    metrics_.count_token(
        jobs[i]->generation().last_action(),
        first ? jobs[i]->seconds_to_first_token() : jobs[i]->seconds_of_last_token(), first);
    try {
      jobs[i]->deliver();
    } catch (...) {
      jobs[i]->break_off(std::current_exception());
    }
  }
}

void Scheduler::retire_finished() {
  for (auto it = running_.begin(); it != running_.end();) {
    Job& job = **it;
    if (!job.finished()) {
      ++it;
      continue;
    }
    if (!job.failed()) {
      const GenerationResult& result = job.generation().result();
      metrics_.count_finished(result.realised, result.effective_steps);
      if (result.finish != FinishReason::cancelled) keep_prefix(job, true);
    }
    const double seconds = job.seconds_running();
    // Its client may be slow to read: the answer stays, the cache does not.
    job.release();
    it = running_.erase(it);
    const std::lock_guard lock(mutex_);
    seconds_per_job_ += 0.1 * (seconds - seconds_per_job_);
    --in_flight_;
  }
  changed_.notify_all();  // drain() waits for the last
}

void Scheduler::publish() {
  Metrics::Gauges gauges;
  {
    const std::lock_guard lock(mutex_);
    gauges.queued = queue_.size();
  }
  gauges.running = running_.size();
  gauges.reserved_tokens = running_tokens();
  gauges.prefix_tokens = prefixes_.tokens();
  gauges.limit_tokens = options_.cache_tokens;
  const CacheUse use = served_.model->cache_use();
  gauges.cache_blocks = use.blocks;
  gauges.cache_bytes = use.bytes;
  metrics_.set(gauges);
}

}  // namespace sol
