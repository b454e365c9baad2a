// Counter-based random numbers (Philox 4x32-10; Salmon et al., SC 2011). A draw is a pure function
// of (seed, stream, block, rollout, step), so results depend neither on batching nor on threads,
// ranks or resumption.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace sol {

std::array<uint32_t, 4> philox4x32(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key);

// What a draw is for; draws for different purposes are independent of each other.
enum class RandomStream : uint32_t {
  budget = 1,
  action = 2,
  shuffle = 3,
  schedule = 4,
  token = 5,
  initialisation = 6,
  data_order = 7,
  bootstrap = 8,
  test = 9,
  window = 10,
  corpus_files = 11,
  corpus_documents = 12,
};

struct RandomKey {
  uint64_t seed = 0;
  RandomStream stream = RandomStream::test;
  uint64_t block = 0;    // which input; at most 2^40 - 1
  uint32_t rollout = 0;  // at most 2^24 - 1
  uint32_t step = 0;
};

// A sequence of draws for one key. Cheap to make; make one per key rather than keeping it.
class Random {
 public:
  explicit Random(const RandomKey& key);
  uint32_t next_u32();
  uint64_t next_u64();
  double uniform_double();     // [0, 1), 53 bits
  uint32_t below(uint32_t n);  // uniform in 0..n-1, without modulo bias; n > 0
  double normal();             // standard normal (Box-Muller)

 private:
  std::array<uint32_t, 2> key_;
  std::array<uint32_t, 4> counter_;
  std::array<uint32_t, 4> block_{};
  int used_ = 4;
};

// Puts the items in an order drawn from `random` (Fisher-Yates). Throws nothing; at most 2^32 - 1
// items.
template <typename T>
void shuffle(std::vector<T>& items, Random& random) {
  for (std::size_t i = items.size(); i > 1; --i)
    std::swap(items[i - 1], items[random.below(static_cast<uint32_t>(i))]);
}

}  // namespace sol
