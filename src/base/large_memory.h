// Memory for large arrays: in huge pages where the system allows it, so that reading and writing
// them misses the translation cache less often: under some hypervisors ordinary pages are read at a
// twentieth of the speed (docs/performance.md, "Huge pages").
#pragma once

#include <cstddef>
#include <cstdlib>
#include <new>
#include <vector>

namespace sol {

inline constexpr size_t huge_page_bytes = size_t{2} << 20;

// What large arrays begin at multiples of: huge pages, or cache lines where they are shorter.
constexpr size_t large_alignment(size_t bytes) {
  return bytes >= huge_page_bytes ? huge_page_bytes : 64;
}

// Asks the system for huge pages in [memory, memory + bytes), which begins with a page. A wish:
// without them nothing changes but the time.
void prefer_huge_pages(void* memory, size_t bytes);

// `bytes` that begin as large_alignment() says, to be given to std::free. Throws std::bad_alloc.
void* allocate_large(size_t bytes);

template <typename T>
struct LargeAllocator {
  using value_type = T;

  LargeAllocator() = default;
  template <typename U>
  LargeAllocator(const LargeAllocator<U>&) {}

  T* allocate(size_t n) {
    if (n > static_cast<size_t>(-1) / sizeof(T)) throw std::bad_array_new_length();
    return static_cast<T*>(allocate_large(n * sizeof(T)));
  }
  void deallocate(T* memory, size_t) { std::free(memory); }
  bool operator==(const LargeAllocator&) const = default;
};

template <typename T>
using LargeVector = std::vector<T, LargeAllocator<T>>;

}  // namespace sol
