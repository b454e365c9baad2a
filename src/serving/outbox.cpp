#include "serving/outbox.h"

#include <utility>

namespace sol {

Outbox::Delivery& Outbox::delivery_of(size_t index) {
  for (Delivery& delivery : waiting_)
    if (delivery.index == index) return delivery;
  waiting_.push_back({index, {}, std::nullopt});
  return waiting_.back();
}

void Outbox::put(size_t index, TokenOutput token) {
  {
    const std::lock_guard lock(mutex_);
    delivery_of(index).tokens.push_back(std::move(token));
  }
  if (each_token_) arrived_.notify_one();
}

void Outbox::finish(size_t index, Outcome outcome) {
  {
    const std::lock_guard lock(mutex_);
    delivery_of(index).outcome = std::move(outcome);
    something_ended_ = true;
  }
  arrived_.notify_one();
}

std::vector<Outbox::Delivery> Outbox::take(std::chrono::milliseconds patience) {
  std::unique_lock lock(mutex_);
  arrived_.wait_for(lock, patience,
                    [&] { return each_token_ ? !waiting_.empty() : something_ended_; });
  std::vector<Delivery> fresh;
  fresh.reserve(sequences_);
  something_ended_ = false;
  return std::exchange(waiting_, std::move(fresh));
}

}  // namespace sol
