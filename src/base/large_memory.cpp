#include "base/large_memory.h"

#include <sys/mman.h>

namespace sol {

void prefer_huge_pages(void* memory, size_t bytes) {
#ifdef MADV_HUGEPAGE
  // Whole ones only: the rest of the last one would be memory that nobody needs.
  if (bytes >= huge_page_bytes)
    (void)madvise(memory, bytes / huge_page_bytes * huge_page_bytes, MADV_HUGEPAGE);
#endif
}

void* allocate_large(size_t bytes) {
  const size_t alignment = large_alignment(bytes);
  if (bytes > static_cast<size_t>(-1) - alignment) throw std::bad_alloc();
  void* memory = std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
  if (!memory) throw std::bad_alloc();
  prefer_huge_pages(memory, bytes);
  return memory;
}

}  // namespace sol
