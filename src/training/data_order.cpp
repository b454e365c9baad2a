#include "training/data_order.h"

#include <numeric>

#include "base/fail.h"

namespace sol {

std::vector<int64_t> shuffled(int64_t n, uint64_t seed, RandomStream stream, uint64_t block) {
  std::vector<int64_t> out(static_cast<size_t>(n));
  std::iota(out.begin(), out.end(), int64_t{0});
  Random random({.seed = seed, .stream = stream, .block = block});
  shuffle(out, random);
  return out;
}

DataOrder::DataOrder(int64_t blocks, uint64_t seed) : blocks_(blocks), seed_(seed) {
  if (blocks < 1) fail("training data: no blocks");
  if (blocks > int64_t{UINT32_MAX}) fail("training data: {} blocks are more than 2^32 - 1", blocks);
}

int64_t DataOrder::block(int64_t position) {
  const int64_t epoch = this->epoch(position);
  if (epoch != epoch_) {
    order_ = shuffled(blocks_, seed_, RandomStream::data_order, static_cast<uint64_t>(epoch));
    epoch_ = epoch;
  }
  return order_[static_cast<size_t>(position % blocks_)];
}

}  // namespace sol
