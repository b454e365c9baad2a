#include "base/shared_memory.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cstring>

#include "throws.h"

namespace sol::test {
namespace {

TEST(SharedMemoryTest, AnotherProcessReadsWhatTheCreatorWrote) {
  const auto memory = SharedMemory::create();
  memory->reserve(size_t{1} << 30);  // room takes no memory until written to
  std::memcpy(memory->data() + 12345, "weights", 8);
  const std::string path = memory->path().string();
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    try {
      const auto opened = SharedMemory::open(path);
      const bool same =
          opened->opened() && opened->size() == size_t{1} << 30 &&
          std::strcmp(reinterpret_cast<char*>(opened->data()) + 12345, "weights") == 0;
      _exit(same ? 0 : 1);
    } catch (...) {
      _exit(2);
    }
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_FALSE(memory->opened());
}

TEST(SharedMemoryTest, SaysWhatIsWrong) {
  EXPECT_THAT([] { SharedMemory::open("/proc/1/fd/99999"); },
              throws({"/proc/1/fd/99999", "different containers"}));
  const auto empty = SharedMemory::create();
  EXPECT_THAT([&] { SharedMemory::open(empty->path()); }, throws({"is empty"}));
  empty->reserve(4096);
  EXPECT_THAT([&] { empty->reserve(4096); }, throws({"has its size already"}));
}

}  // namespace
}  // namespace sol::test
