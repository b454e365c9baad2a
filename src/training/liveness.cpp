#include "training/liveness.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <exception>

namespace sol {
namespace {

using Clock = std::chrono::steady_clock;

std::chrono::duration<double> seconds(double value) {
  return std::chrono::duration<double>(value);
}

double now() {
  return std::chrono::duration<double>(Clock::now().time_since_epoch()).count();
}

std::string alive_key(int rank) {
  return fmt::format("alive/{}", rank);
}
std::string read_key(int rank) {
  return fmt::format("read/{}", rank);
}

constexpr const char* failure_key = "failure";
constexpr const char* done = "done";
constexpr const char* board_is_lost =
    "the connection to rank 0 or its launcher, where the processes meet, is lost: it ended or was "
    "killed";

std::string silence(int rank, double seconds) {
  return fmt::format(
      "rank {} has given no sign of life for {:.0f} s: its process hangs, is stopped or its "
      "machine "
      "is gone",
      rank, seconds);
}

constexpr double report_patience = 1;  // seconds

}  // namespace

Liveness::Liveness(std::unique_ptr<SharedBoard> board, int rank, int size,
                   const LivenessOptions& options)
    : board_(std::move(board)),
      rank_(rank),
      size_(size),
      options_(options),
      signs_(static_cast<size_t>(size)) {
  for (Sign& sign : signs_) sign.seen = now();
  thread_ = std::jthread([this](std::stop_token stop) { watch(stop); });
}

Liveness::~Liveness() {
  thread_.request_stop();
  changed_.notify_all();
  thread_.join();
  try {
    std::unique_lock lock(mutex_);
    board_->set(alive_key(rank_), done);
    // After another's failure for those only who have not heard of it, which is read here.
    if (rank_ == 0 && !why_.empty()) wait_for_readers(lock);
    while (rank_ == 0 && why_.empty() && !reported_) {
      look_around();
      bool all = true;
      for (int r = 1; r < size_; ++r) all = all && signs_[static_cast<size_t>(r)].done;
      if (all) break;
      changed_.wait_for(lock, seconds(0.02));
    }
  } catch (const std::exception&) {
    // The board is gone, and with it whoever could have read this.
  }
}

std::string Liveness::why() const {
  const std::lock_guard lock(mutex_);
  return why_;
}

void Liveness::fail_with(const std::string& why) {
  if (why_.empty()) why_ = why;
  failure_.request_stop();
  changed_.notify_all();
}

void Liveness::read_failure() {
  if (!board_->has(failure_key)) return;
  const std::string why = board_->get(failure_key);
  board_->set(read_key(rank_), "1");
  fail_with(why);
}

void Liveness::look_around() {
  read_failure();
  if (!why_.empty()) return;
  for (int r = 0; r < size_; ++r) {
    Sign& sign = signs_[static_cast<size_t>(r)];
    if (r == rank_ || sign.done) continue;
    if (board_->has(alive_key(r))) {
      const std::string latest = board_->get(alive_key(r));
      sign.done = latest == done;
      if (latest != sign.last) sign.seen = now();
      sign.last = latest;
    }
    if (sign.done || now() - sign.seen < options_.silence_seconds) continue;
    const std::string why = silence(r, options_.silence_seconds);
    board_->set(failure_key, why);
    fail_with(why);
    return;
  }
}

void Liveness::watch(std::stop_token stop) {
  std::unique_lock lock(mutex_);
  double next_sign = now();
  while (!stop.stop_requested() && why_.empty() && !reported_) {
    const double asked = now();
    try {
      if (now() >= next_sign) {
        next_sign = now() + options_.interval_seconds;
        board_->set(alive_key(rank_), fmt::format("{}", ++beats_));
        look_around();
      } else {
        read_failure();
      }
    } catch (const std::exception&) {
      // The board is rank 0's: of one that is stopped no answer comes, and no error either.
      const bool silent = now() - asked > 0.9 * options_.silence_seconds;
      fail_with(silent ? silence(0, options_.silence_seconds) : board_is_lost);
    }
    const double pause = std::min(options_.news_seconds, options_.interval_seconds);
    changed_.wait_for(lock, stop, seconds(pause), [] { return false; });
  }
}

void Liveness::report(const std::string& why) noexcept {
  try {
    std::unique_lock lock(mutex_);
    if (!why_.empty() || reported_) return;  // an effect of another one's failure
    if (board_->has(failure_key)) return;
    reported_ = true;
    board_->set(failure_key, fmt::format("rank {}: {}", rank_, why));
    board_->set(read_key(rank_), "1");
    wait_for_readers(lock);
  } catch (const std::exception&) {
    // Nobody is left to be told.
  }
}

void Liveness::wait_for_readers(std::unique_lock<std::mutex>& lock) {
  const double deadline = now() + report_patience;
  for (bool all = false; !all && now() < deadline;) {
    all = true;
    for (int r = 0; r < size_; ++r)
      all = all && (r == rank_ || signs_[static_cast<size_t>(r)].done || board_->has(read_key(r)));
    if (!all) changed_.wait_for(lock, seconds(0.02));
  }
}

void Liveness::look_for_report(double patience) noexcept {
  std::unique_lock lock(mutex_);
  try {
    const double deadline = now() + patience;
    while (why_.empty()) {
      read_failure();
      if (!why_.empty() || now() >= deadline) return;
      changed_.wait_for(lock, seconds(0.05));
    }
  } catch (const std::exception&) {
    fail_with(board_is_lost);
  }
}

}  // namespace sol
