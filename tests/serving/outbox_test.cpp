#include "serving/outbox.h"

#include <gtest/gtest.h>

#include <thread>

#include "base/stopwatch.h"

namespace sol {
namespace {

using std::chrono::milliseconds;

TokenOutput token(int32_t id) {
  TokenOutput output;
  output.token = id;
  return output;
}

TEST(Outbox, GathersWhatOneSequencePutsOut) {
  Outbox outbox(2);
  EXPECT_TRUE(outbox.take(milliseconds{0}).empty());
  outbox.put(0, token(1));
  outbox.put(1, token(2));
  outbox.put(0, token(3));
  outbox.finish(0, {});
  const auto deliveries = outbox.take(milliseconds{0});
  ASSERT_EQ(deliveries.size(), 2u);
  EXPECT_EQ(deliveries[0].tokens.size(), 2u);
  EXPECT_TRUE(deliveries[0].outcome);
  EXPECT_EQ(deliveries[1].tokens.at(0).token, 2);
  EXPECT_FALSE(deliveries[1].outcome);
  EXPECT_TRUE(outbox.take(milliseconds{0}).empty());
}

TEST(Outbox, WaitsForOutcomesOnlyWhereTokensDoNotCount) {
  constexpr milliseconds long_time{60000};
  Outbox each(1, true), ends(1, false);
  const Stopwatch stopwatch;
  each.put(0, token(1));
  EXPECT_EQ(each.take(long_time).size(), 1u);
  ends.put(0, token(1));
  std::thread later([&] {
    std::this_thread::sleep_for(milliseconds{20});
    ends.put(0, token(2));
    ends.finish(0, {});
  });
  const auto all = ends.take(long_time);
  later.join();
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].tokens.size(), 2u);
  EXPECT_TRUE(all[0].outcome);
  EXPECT_LT(stopwatch.seconds(), 30.0);
  // Without one it waits as long as it may, and returns what there is.
  ends.put(0, token(3));
  const Stopwatch waiting;
  EXPECT_EQ(ends.take(milliseconds{30}).size(), 1u);
  EXPECT_GE(waiting.seconds(), 0.029);
}

}  // namespace
}  // namespace sol
