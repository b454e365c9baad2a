#include "base/threads.h"

#include <omp.h>

#include <atomic>
#include <stdexcept>
#include <thread>
#include <vector>

#include "sol/error.h"
#include "support.h"

namespace sol {
namespace {

class ThreadsTest : public testing::Test {
 protected:
  ~ThreadsTest() override { set_thread_count(0); }
};

TEST_F(ThreadsTest, CountCanBeSet) {
  set_thread_count(3);
  EXPECT_EQ(thread_count(), 3);
  set_thread_count(0);
  EXPECT_GE(thread_count(), 1);
}

TEST_F(ThreadsTest, MoreThanOpenMpGrantsIsAnError) {
  const int levels = omp_get_max_active_levels();
  omp_set_max_active_levels(0);
  EXPECT_THROW(set_thread_count(2), Error);
  set_thread_count(0);
  EXPECT_EQ(thread_count(), 1);
  omp_set_max_active_levels(levels);
  EXPECT_NO_THROW(set_thread_count(2));
}

TEST_F(ThreadsTest, EveryIndexIsVisitedOnce) {
  set_thread_count(4);
  for (const int64_t n : {0, 1, 3, 1000}) {
    std::vector<std::atomic<int>> visits(static_cast<size_t>(n));
    parallel_for(n, [&](int64_t i) { ++visits[static_cast<size_t>(i)]; });
    for (const auto& count : visits) EXPECT_EQ(count, 1);
  }
}

TEST_F(ThreadsTest, NestedCallsRun) {
  set_thread_count(2);
  std::atomic<int> total{0};
  parallel_for(5, [&](int64_t) { parallel_for(7, [&](int64_t) { ++total; }); });
  EXPECT_EQ(total, 35);
}

TEST_F(ThreadsTest, ExceptionsReachTheCaller) {
  set_thread_count(2);
  EXPECT_THROW(parallel_for(100,
                            [](int64_t i) {
                              if (i == 57) throw std::runtime_error("57");
                            }),
               std::runtime_error);
}

TEST(Split, CoversEverythingEvenly) {
  for (const int64_t n : {0, 1, 7, 64, 1001})
    for (const int parts : {1, 2, 3, 8})
      for (const int64_t grain : {1, 4, 16}) {
        int64_t position = 0, smallest = n + 1, largest = 0;
        for (int i = 0; i < parts; ++i) {
          const Range range = split(n, parts, i, grain);
          EXPECT_EQ(range.begin, position);
          EXPECT_GE(range.end, range.begin);
          EXPECT_TRUE(range.end == n || range.end % grain == 0);
          position = range.end;
          smallest = std::min(smallest, range.end - range.begin);
          largest = std::max(largest, range.end - range.begin);
        }
        EXPECT_EQ(position, n);
        EXPECT_LE(largest - smallest, 2 * grain - 1);
      }
}

TEST_F(ThreadsTest, TheNumberHoldsOnEveryThread) {
  set_thread_count(3);
  int seen = 0, used = 0;
  std::thread([&] {
    seen = thread_count();
    std::atomic<int> most{0};
    parallel_for(64, [&](int64_t) { most = omp_get_num_threads(); });
    used = most;
  }).join();
  EXPECT_EQ(seen, 3);
  EXPECT_EQ(used, 3);
}

}  // namespace
}  // namespace sol
