#include "training/lanes.h"

#include "throws.h"

namespace sol::test {
namespace {

TEST(LanesTest, EveryInputHasOneOwner) {
  for (const bool deterministic : {false, true}) {
    for (const int processes : {1, 2, 4}) {
      for (const int batch : {4, 6, 8, 13}) {
        if (deterministic && batch < 4) continue;
        for (size_t schedule = 0; schedule < static_cast<size_t>(2 * batch * 3); ++schedule) {
          int owners = 0;
          for (int rank = 0; rank < processes; ++rank)
            owners +=
                Lanes::share(batch, 3, deterministic, rank, processes).owns_schedule(schedule);
          ASSERT_EQ(owners, 1) << processes << " processes, batch " << batch;
        }
      }
    }
  }
}

TEST(LanesTest, DeterministicLanesDoNotDependOnTheNumberOfProcesses) {
  for (const int processes : {1, 2, 4, 8}) {
    const Lanes lanes = Lanes::share(12, 1, true, 0, processes);
    EXPECT_EQ(lanes.count, 8);
    EXPECT_EQ(lanes.own, 8 / processes);
  }
  EXPECT_EQ(Lanes::share(5, 1, true, 0, 1).count, 4);
  EXPECT_EQ(Lanes::share(1, 1, true, 0, 1).count, 1);
  EXPECT_EQ(Lanes::share(12, 1, false, 0, 1).count, 1);
  EXPECT_EQ(Lanes::share(12, 1, false, 2, 3).first, 2);
}

TEST(LanesTest, SchedulesFollowTheirInput) {
  const Lanes lanes = Lanes::share(4, 3, false, 1, 2);
  EXPECT_FALSE(lanes.owns_schedule(0));
  EXPECT_FALSE(lanes.owns_schedule(5));
  EXPECT_TRUE(lanes.owns_schedule(6));
  EXPECT_TRUE(lanes.owns_schedule(11));
  EXPECT_FALSE(lanes.owns_schedule(12));  // the next batch's first input
}

TEST(LanesTest, SaysWhatCannotBeShared) {
  EXPECT_THAT([] { (void)Lanes::share(3, 1, false, 0, 4); },
              throws({"rollout.batch = 3 inputs cannot be shared by 4 processes"}));
  EXPECT_THAT([] { (void)Lanes::share(8, 1, true, 0, 3); }, throws({"a power of two up to 8"}));
}

}  // namespace
}  // namespace sol::test
