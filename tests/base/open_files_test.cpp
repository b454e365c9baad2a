#include "base/open_files.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include "throws.h"

namespace sol::test {
namespace {

// Puts the limits back; only lower ones of the process's own are set meanwhile.
class OpenFiles : public testing::Test {
 protected:
  OpenFiles() { getrlimit(RLIMIT_NOFILE, &before_); }
  ~OpenFiles() override { setrlimit(RLIMIT_NOFILE, &before_); }
  void lower(rlim_t count) const {
    const rlimit lowered{count, before_.rlim_max};
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &lowered), 0);
  }
  static rlim_t limit() {
    rlimit now{};
    getrlimit(RLIMIT_NOFILE, &now);
    return now.rlim_cur;
  }
  rlimit before_{};
};

TEST_F(OpenFiles, AreRaisedAsFarAsNeeded) {
  lower(20);
  ensure_open_files(15);
  EXPECT_EQ(limit(), 20u);
  ensure_open_files(40);
  EXPECT_EQ(limit(), 40u);
}

TEST_F(OpenFiles, BeyondTheSystemsLimitAreAnError) {
  if (before_.rlim_max == RLIM_INFINITY) GTEST_SKIP() << "this system has no limit";
  lower(20);
  EXPECT_THAT([&] { ensure_open_files(uint64_t{before_.rlim_max} + 1); },
              throws({"may have 20 files", "ulimit -n"}));
  EXPECT_EQ(limit(), 20u);
}

}  // namespace
}  // namespace sol::test
