#include "training/data_order.h"

#include <gtest/gtest.h>

#include <set>

#include "sol/error.h"

namespace sol::test {
namespace {

TEST(DataOrder, EveryEpochVisitsEveryBlockOnceInItsOwnOrder) {
  DataOrder order(50, 7);
  std::vector<int64_t> first, second;
  for (int64_t p = 0; p < 50; ++p) first.push_back(order.block(p));
  for (int64_t p = 50; p < 100; ++p) second.push_back(order.block(p));
  EXPECT_EQ(std::set<int64_t>(first.begin(), first.end()).size(), 50u);
  EXPECT_EQ(std::set<int64_t>(second.begin(), second.end()).size(), 50u);
  EXPECT_NE(first, second);
  EXPECT_EQ(order.epoch(49), 0);
  EXPECT_EQ(order.epoch(50), 1);
}

TEST(DataOrder, APositionNeedsNoHistory) {
  DataOrder walked(50, 7), jumped(50, 7);
  for (int64_t p = 0; p < 73; ++p) walked.block(p);
  EXPECT_EQ(jumped.block(73), walked.block(73));
  EXPECT_EQ(walked.block(3), jumped.block(3));
  DataOrder other(50, 8);
  int same = 0;
  for (int64_t p = 0; p < 50; ++p) same += other.block(p) == walked.block(p);
  EXPECT_LT(same, 15);
}

TEST(DataOrder, NoBlocksIsAnError) {
  EXPECT_THROW(DataOrder(0, 1), Error);
}

}  // namespace
}  // namespace sol::test
