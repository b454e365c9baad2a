#include "engine/weight_memory.h"

#include <sys/mman.h>

#include <cstdlib>
#include <new>

namespace sol {
namespace {

constexpr size_t kHugePage = size_t{2} << 20;

}  // namespace

void WeightMemory::Free::operator()(void* p) const {
  std::free(p);
}

std::byte* WeightMemory::allocate(size_t bytes) {
  const size_t alignment = bytes >= kHugePage ? kHugePage : 64;
  void* p = std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
  if (!p) throw std::bad_alloc();
  blocks_.emplace_back(p);
  // Whole huge pages only: the rest of the last one would be memory that nobody needs. Advice that
  // the system does not take changes nothing.
  if (bytes >= kHugePage) (void)madvise(p, bytes / kHugePage * kHugePage, MADV_HUGEPAGE);
  return static_cast<std::byte*>(p);
}

}  // namespace sol
