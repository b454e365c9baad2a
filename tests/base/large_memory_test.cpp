#include "base/large_memory.h"

#include <cstdint>
#include <numeric>

#include "support.h"

namespace sol {
namespace {

TEST(LargeMemory, BeginsAtCacheLinesOrHugePages) {
  for (const size_t bytes :
       {size_t{1}, size_t{100}, huge_page_bytes - 1, huge_page_bytes, 3 * huge_page_bytes + 5}) {
    auto* memory = static_cast<unsigned char*>(allocate_large(bytes));
    EXPECT_EQ(
        reinterpret_cast<uintptr_t>(memory) % (bytes < huge_page_bytes ? 64 : size_t{2} << 20), 0U)
        << bytes;
    memory[0] = memory[bytes - 1] = 1;  // all of it is there
    std::free(memory);
  }
}

TEST(LargeMemory, RefusesWhatNoMachineHas) {
  EXPECT_THROW(allocate_large(static_cast<size_t>(-1)), std::bad_alloc);
  EXPECT_THROW(allocate_large(static_cast<size_t>(-1) / 2), std::bad_alloc);
  LargeAllocator<double> numbers;
  EXPECT_THROW(numbers.allocate(static_cast<size_t>(-1) / 4), std::bad_array_new_length);
}

TEST(LargeVector, KeepsItsElementsWhenItGrows) {
  LargeVector<int> numbers(1000);
  std::iota(numbers.begin(), numbers.end(), 0);
  numbers.resize(3 * huge_page_bytes / sizeof(int));
  EXPECT_EQ(reinterpret_cast<uintptr_t>(numbers.data()) % huge_page_bytes, 0U);
  EXPECT_EQ(numbers[999], 999);
  EXPECT_EQ(numbers.back(), 0);
}

}  // namespace
}  // namespace sol
