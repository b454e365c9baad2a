#include "serving/fair_queue.h"

#include <gtest/gtest.h>

namespace sol {
namespace {

using Queue = FairQueue<int>;
constexpr auto any = [](int) { return Queue::Verdict::take; };

TEST(FairQueue, PartiesTakeTurns) {
  Queue queue;
  for (const int item : {1, 2, 3}) queue.push("many", item);
  queue.push("one", 10);
  queue.push("two", 20);
  EXPECT_EQ(queue.size(), 5u);
  std::vector<int> order;
  while (const auto item = queue.pop(any)) order.push_back(*item);
  EXPECT_EQ(order, (std::vector{1, 10, 20, 2, 3}));
  EXPECT_TRUE(queue.empty());
}

// A user who goes by a request's number does not wait behind it, nor it behind them.
TEST(FairQueue, NoUserIsTakenForARequest) {
  Queue queue;
  queue.push(uint64_t{3}, 1);
  for (const char* user : {"3", "request 3", ""}) queue.push(user, 10);
  queue.push(uint64_t{3}, 2);
  queue.push(uint64_t{0}, 3);
  std::vector<int> order;
  while (const auto item = queue.pop(any)) order.push_back(*item);
  EXPECT_EQ(order, (std::vector{1, 10, 10, 10, 3, 2}));
}

TEST(FairQueue, OneMayWaitWhileOthersPassAndNobodyPassesOneThatStops) {
  Queue queue;
  queue.push("a", 1);
  queue.push("b", 2);
  queue.push("c", 3);
  const auto later = [](int item) {
    return item == 1 ? Queue::Verdict::later : Queue::Verdict::take;
  };
  EXPECT_EQ(queue.pop(later), 2);
  const auto stop = [](int item) {
    return item == 1 ? Queue::Verdict::stop : Queue::Verdict::take;
  };
  EXPECT_EQ(queue.pop(stop), std::nullopt);
  EXPECT_EQ(queue.pop(any), 1);
}

// An item that memory runs out for when it is put somewhere.
struct Heavy {
  explicit Heavy(bool fails) : too_heavy(fails) {}
  Heavy(const Heavy&) = default;
  Heavy(Heavy&& other) : too_heavy(other.too_heavy) {
    if (too_heavy) throw std::bad_alloc();
  }
  bool too_heavy;
};

TEST(FairQueue, APushThatFailsLeavesItAsItWas) {
  using HeavyQueue = FairQueue<Heavy>;
  HeavyQueue queue;
  EXPECT_THROW(queue.push("a", Heavy(true)), std::bad_alloc);
  EXPECT_TRUE(queue.empty());
  queue.push("b", Heavy(false));
  EXPECT_THROW(queue.push("b", Heavy(true)), std::bad_alloc);
  EXPECT_EQ(queue.size(), 1u);
  const auto any_heavy = [](const Heavy&) { return HeavyQueue::Verdict::take; };
  EXPECT_TRUE(queue.pop(any_heavy));
  EXPECT_FALSE(queue.pop(any_heavy));
}

TEST(FairQueue, RemovesWhatIsGone) {
  Queue queue;
  for (int item = 0; item < 6; ++item) queue.push(item < 3 ? "a" : "b", item);
  EXPECT_EQ(queue.remove_if([](int item) { return item < 4; }), 4u);
  EXPECT_EQ(queue.size(), 2u);
  EXPECT_EQ(queue.pop(any), 4);
  EXPECT_EQ(queue.pop(any), 5);
  EXPECT_EQ(queue.pop(any), std::nullopt);
}

}  // namespace
}  // namespace sol
