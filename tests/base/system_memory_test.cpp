#include "base/system_memory.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <fstream>
#include <utility>

#include "support.h"
#include "throws.h"

namespace sol::test {
namespace {

class SystemMemoryTest : public testing::Test {
 protected:
  void write(const std::string& path, const std::string& text) {
    const auto file = root_.path() / path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }
  uint64_t available() const { return available_memory_under(root_.path()); }
  TemporaryDirectory root_;
};

TEST_F(SystemMemoryTest, IsWhatTheSystemSays) {
  write("proc/meminfo", "MemTotal: 1000 kB\nMemFree: 10 kB\nMemAvailable:   500 kB\n");
  EXPECT_EQ(available(), 500u * 1024);
  write("proc/self/cgroup", "0::/a/b\n");
  write("sys/fs/cgroup/a/b/memory.max", "max\n");
  write("sys/fs/cgroup/a/b/memory.current", "5000\n");
  EXPECT_EQ(available(), 500u * 1024);
}

TEST_F(SystemMemoryTest, AGroupsLimitCountsAlsoOneAbove) {
  write("proc/meminfo", "MemAvailable:   500 kB\n");
  write("proc/self/cgroup", "0::/a/b\n");
  write("sys/fs/cgroup/a/memory.max", "200000\n");
  write("sys/fs/cgroup/a/memory.current", "150000\n");
  EXPECT_EQ(available(), 50000u);
  write("sys/fs/cgroup/a/memory.stat", "anon 1\ninactive_file 30000\n");
  EXPECT_EQ(available(), 80000u);
  write("sys/fs/cgroup/memory.max", "10\n");
  write("sys/fs/cgroup/memory.current", "20\n");
  EXPECT_EQ(available(), 0u);
}

TEST(SystemMemory, ALimitOfAddressesCounts) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_AS, &before), 0);
  std::ifstream file("/proc/self/statm");
  uint64_t pages = 0;
  file >> pages;
  const uint64_t spare = uint64_t{100} << 20, libraries = uint64_t{512} << 20;
  const rlimit limited{pages * static_cast<uint64_t>(sysconf(_SC_PAGESIZE)) + libraries + spare,
                       before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_AS, &limited), 0);
  const uint64_t available = available_memory();
  setrlimit(RLIMIT_AS, &before);
  EXPECT_LE(available, spare);
  EXPECT_GE(available, spare / 2);
}

TEST(SystemMemory, OfThisProcess) {
  EXPECT_GT(available_memory(), uint64_t{1} << 20);
  const uint64_t before = resident_memory();
  const std::string block(64 << 20, 'x');
  EXPECT_GE(resident_memory(), before + (60u << 20)) << block.size();
}

TEST(RequireAddresses, NamesTheLimitThatIsTooLow) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "the sanitizer reserves more addresses than any limit";
#endif
  require_addresses(uint64_t{1} << 20, "LibTorch");
  for (const auto& [resource, option] :
       {std::pair{RLIMIT_AS, "-v"}, std::pair{RLIMIT_DATA, "-d"}}) {
    rlimit before{};
    ASSERT_EQ(getrlimit(resource, &before), 0);
    rlimit low = before;
    low.rlim_cur = rlim_t{2} << 30;
    ASSERT_EQ(setrlimit(resource, &low), 0);
    EXPECT_NO_THROW(require_addresses(uint64_t{2} << 30, "LibTorch"));
    EXPECT_THAT(
        [] { require_addresses(uint64_t{3} << 30, "LibTorch"); },
        throws({"LibTorch: needs 3072 MiB", std::string("ulimit ") + option + " allows 2048 MiB"}));
    ASSERT_EQ(setrlimit(resource, &before), 0);
  }
}

}  // namespace
}  // namespace sol::test
