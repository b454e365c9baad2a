// Work in a row of three: one thread produces, several transform, the caller consumes in the order
// of production. What is on the way is bounded, so a stream of any length passes through.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

namespace sol {

// Out is default-constructible.
template <typename In, typename Out>
class OrderedPipeline {
 public:
  // Hands an item on; waits while more than `capacity` is on the way. `cost` is in its units. An
  // item that costs more than all of it goes alone.
  using Emit = std::function<void(In&&, size_t cost)>;

  // `threads` of them transform; an item is on the way until it is consumed.
  OrderedPipeline(int threads, size_t capacity) : threads_(threads), capacity_(capacity) {}

  // Returns when `produce` has ended and everything was consumed. What a stage throws comes out of
  // here at its place in the order: all items before the failing one have been consumed, none after
  // it. To be called once.
  void run(const std::function<void(const Emit&)>& produce,
           const std::function<Out(In&&)>& transform, const std::function<void(Out&&)>& consume) {
    std::vector<std::jthread> workers;
    // Declared after the threads: whatever happens below, they are told to end before the join.
    const Abandon abandon{*this};
    workers.emplace_back([&] { run_producer(produce); });
    for (int i = 0; i < threads_; ++i) workers.emplace_back([&] { run_worker(transform); });
    while (std::optional<Item> item = next_finished()) {
      if (item->error) std::rethrow_exception(item->error);
      consume(std::move(item->out));
      release(item->cost);
    }
    if (producer_error_) std::rethrow_exception(producer_error_);
  }

 private:
  struct Item {
    In in;
    size_t cost = 0;
    bool done = false;
    Out out{};
    std::exception_ptr error{};
  };
  struct Abandoned {};  // unwinds the producer when nobody wants its items any more
  struct Abandon {
    OrderedPipeline& pipeline;
    ~Abandon() {
      const std::lock_guard lock(pipeline.mutex_);
      pipeline.abandoned_ = true;
      pipeline.changed_.notify_all();
    }
  };

  void run_producer(const std::function<void(const Emit&)>& produce) {
    std::exception_ptr error;
    try {
      produce([this](In&& in, size_t cost) { emit(std::move(in), cost); });
    } catch (const Abandoned&) {
    } catch (...) {
      error = std::current_exception();
    }
    const std::lock_guard lock(mutex_);
    producer_error_ = error;
    produced_all_ = true;
    changed_.notify_all();
  }

  void emit(In&& in, size_t cost) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] {
      return abandoned_ || cost_on_the_way_ == 0 || cost_on_the_way_ + cost <= capacity_;
    });
    if (abandoned_) throw Abandoned();
    items_.push_back({std::move(in), cost});
    cost_on_the_way_ += cost;
    changed_.notify_all();
  }

  void run_worker(const std::function<Out(In&&)>& transform) {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [&] { return abandoned_ || started_ < items_.size() || produced_all_; });
      if (abandoned_ || started_ == items_.size()) return;
      // A deque's elements stay where they are while others come and go at its ends.
      Item& item = items_[started_++];
      lock.unlock();
      try {
        item.out = transform(std::move(item.in));
      } catch (...) {
        item.error = std::current_exception();
      }
      lock.lock();
      item.done = true;
      changed_.notify_all();
    }
  }

  std::optional<Item> next_finished() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return items_.empty() ? produced_all_ : items_.front().done; });
    if (items_.empty()) return std::nullopt;
    Item item = std::move(items_.front());
    items_.pop_front();
    --started_;
    return item;
  }

  void release(size_t cost) {
    const std::lock_guard lock(mutex_);
    cost_on_the_way_ -= cost;
    changed_.notify_all();
  }

  const int threads_;
  const size_t capacity_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Item> items_;  // in the order of production; the first `started_` are taken
  size_t started_ = 0;
  size_t cost_on_the_way_ = 0;
  bool produced_all_ = false, abandoned_ = false;
  std::exception_ptr producer_error_;
};

}  // namespace sol
