#include "engine/kv_cache.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <fstream>
#include <memory>
#include <new>

#include "golden.h"

namespace sol::test {
namespace {

// While this lives, the process can have `bytes` more of addresses.
class AddressLimit {
 public:
  explicit AddressLimit(uint64_t bytes) {
    getrlimit(RLIMIT_AS, &before_);
    std::ifstream file("/proc/self/statm");
    uint64_t pages = 0;
    file >> pages;
    const rlimit limit{pages * static_cast<uint64_t>(sysconf(_SC_PAGESIZE)) + bytes,
                       before_.rlim_max};
    setrlimit(RLIMIT_AS, &limit);
  }
  ~AddressLimit() { setrlimit(RLIMIT_AS, &before_); }
  AddressLimit(const AddressLimit&) = delete;
  AddressLimit& operator=(const AddressLimit&) = delete;

 private:
  rlimit before_{};
};

TEST(CpuSequence, IsAsItWasWhereMemoryEndsWhileItGrows) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "the sanitizer ends the program where memory does";
#endif
  const LlamaConfig config = load_config(golden_dir() / "tiny_untied_f32");
  const SequenceOptions options;
  const CacheLayout layout(config, options, kernels::ElementType::f32);
  // Blocks far larger than the layout asks for, of which nothing is touched but what it does.
  constexpr int64_t block = int64_t{256} << 20;
  const auto pool = std::make_shared<BlockPool>(block);
  CpuSequence sequence(options, layout, pool);
  {
    const AddressLimit room_for_one(static_cast<uint64_t>(block + block / 2));
    EXPECT_THROW(sequence.grow(2 * layout.tokens), std::bad_alloc);
  }
  EXPECT_EQ(sequence.length(), 0);
  EXPECT_EQ(pool->blocks_in_use(), 0u);
  const auto child = sequence.fork();
  sequence.grow(1);
  child->grow(1);
  EXPECT_NE(sequence.blocks()[0], child->blocks()[0]);
  EXPECT_EQ(pool->blocks_in_use(), 2u);
}

}  // namespace
}  // namespace sol::test
