// A flat hash map keyed by pairs of ids.
#pragma once

#include <bit>
#include <cstdint>
#include <utility>
#include <vector>

namespace sol {

// Open addressing over one array: a lookup is one multiplication and mostly one cache line. Ids
// must not be negative.
template <typename Value>
class PairMap {
 public:
  explicit PairMap(size_t expected = 0) { rebuild(std::bit_ceil(2 * expected + 2)); }

  // Adds the pair or replaces its value.
  void set(int32_t first, int32_t second, Value value) {
    if (2 * (count_ + 1) > slots_.size()) rebuild(2 * slots_.size());
    Slot& slot = slots_[find_slot(key_of(first, second))];
    count_ += slot.key == kFree;
    slot = {key_of(first, second), value};
  }

  const Value* find(int32_t first, int32_t second) const {
    const Slot& slot = slots_[find_slot(key_of(first, second))];
    return slot.key == kFree ? nullptr : &slot.value;
  }

  size_t size() const { return count_; }

 private:
  static constexpr uint64_t kFree = ~uint64_t{0};
  struct Slot {
    uint64_t key = kFree;
    Value value{};
  };

  static uint64_t key_of(int32_t first, int32_t second) {
    return static_cast<uint64_t>(static_cast<uint32_t>(first)) << 32 |
           static_cast<uint32_t>(second);
  }

  size_t find_slot(uint64_t key) const {
    // Fibonacci hashing; the xor brings the first id's bits to where the product spreads them.
    size_t at = ((key ^ key >> 29) * 0x9E3779B97F4A7C15u) >> shift_;
    while (slots_[at].key != key && slots_[at].key != kFree) at = (at + 1) & (slots_.size() - 1);
    return at;
  }

  void rebuild(size_t slots) {
    const std::vector<Slot> old = std::exchange(slots_, std::vector<Slot>(slots));
    shift_ = 64 - std::countr_zero(slots);
    for (const Slot& slot : old) {
      if (slot.key != kFree) slots_[find_slot(slot.key)] = slot;
    }
  }

  std::vector<Slot> slots_;
  size_t count_ = 0;
  int shift_ = 0;
};

}  // namespace sol
