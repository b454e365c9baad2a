#include "corpus.h"

#include "base/fail.h"
#include "base/random.h"
#include "training/data_order.h"

namespace sol::pretrain {

WindowOrder::WindowOrder(std::span<const int32_t> ids, int window, uint64_t seed)
    : ids_(ids),
      window_(window),
      // Lengths draw independently of each other.
      seed_(seed ^ (static_cast<uint64_t>(window) << 32)),
      per_epoch_((static_cast<int64_t>(ids.size()) - window) / window) {
  if (per_epoch_ < 1)
    fail("{} tokens of text are not enough for windows of {}", ids.size(), window);
  if (per_epoch_ > int64_t{UINT32_MAX}) fail("{} windows are more than 2^32 - 1", per_epoch_);
}

std::span<const int32_t> WindowOrder::window(int64_t position) {
  const int64_t epoch = position / per_epoch_;
  if (epoch != epoch_) {
    const auto key = static_cast<uint64_t>(epoch);
    order_ = shuffled(per_epoch_, seed_, RandomStream::data_order, key);
    Random random({.seed = seed_, .stream = RandomStream::shuffle, .block = key});
    offset_ = random.below(static_cast<uint32_t>(window_));
    epoch_ = epoch;
  }
  const int64_t first = offset_ + order_[static_cast<size_t>(position % per_epoch_)] * window_;
  return ids_.subspan(static_cast<size_t>(first), static_cast<size_t>(window_) + 1);
}

Batch WindowOrder::batch(int64_t position, int64_t windows) {
  batch_.clear();
  for (int64_t i = 0; i < windows; ++i) {
    const auto ids = window(position + i);
    batch_.insert(batch_.end(), ids.begin(), ids.end());
  }
  return {batch_, window_};
}

}  // namespace sol::pretrain
