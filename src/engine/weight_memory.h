// Memory for the weights that loading makes.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "base/shared_memory.h"

namespace sol {

// Blocks that live as long as this. Large ones are aligned to huge pages and the system is asked to
// use them: reading weights then misses the translation cache less often.
//
// Private by default. In shared memory the process that created it fills the blocks; others find
// them filled, as they ask for the same ones in the same order.
class WeightMemory {
 public:
  WeightMemory() = default;
  // `most_bytes`: an upper bound of all blocks, with alignment. `contents` says what they will
  // hold; throws Error when shared memory that was opened holds something else.
  WeightMemory(std::shared_ptr<SharedMemory> shared, size_t most_bytes, std::string_view contents);

  // A block, at least 64-byte aligned, that `fill` has written. Throws std::bad_alloc.
  const std::byte* make(size_t bytes, const std::function<void(std::byte*)>& fill);

  // A block to be written, where no other process fills it.
  std::byte* allocate(size_t bytes);

  // Whether another process makes the blocks, and has checked what it made them of.
  bool filled() const { return shared_ && shared_->opened(); }

 private:
  struct Free {
    void operator()(void* p) const;
  };
  std::vector<std::unique_ptr<void, Free>> blocks_;
  std::shared_ptr<SharedMemory> shared_;
  size_t used_ = 0;  // of shared memory
};

}  // namespace sol
