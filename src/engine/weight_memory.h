// Private memory for weights.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

namespace sol {

// Blocks that live as long as this. Large ones are aligned to huge pages and the system is asked to
// use them: reading weights then misses the translation cache less often.
class WeightMemory {
 public:
  std::byte* allocate(size_t bytes);  // at least 64-byte aligned; throws std::bad_alloc

 private:
  struct Free {
    void operator()(void* p) const;
  };
  std::vector<std::unique_ptr<void, Free>> blocks_;
};

}  // namespace sol
