// In which order training visits the blocks: each epoch is its own counter-based shuffle, so the
// block at a position is a function of (seed, position, number of blocks) and a resumed run needs
// the position only.
#pragma once

#include <cstdint>
#include <vector>

#include "base/random.h"

namespace sol {

// 0..n-1 shuffled (Fisher-Yates) with draws keyed by (seed, stream, block).
std::vector<int64_t> shuffled(int64_t n, uint64_t seed, RandomStream stream, uint64_t block);

class DataOrder {
 public:
  // Throws Error when there are no blocks.
  DataOrder(int64_t blocks, uint64_t seed);

  int64_t block(int64_t position);
  int64_t epoch(int64_t position) const { return position / blocks_; }

 private:
  int64_t blocks_;
  uint64_t seed_;
  int64_t epoch_ = -1;  // whose order is held
  std::vector<int64_t> order_;
};

}  // namespace sol
