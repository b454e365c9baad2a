#include "corpus.h"

#include <numeric>
#include <set>

#include "support.h"
#include "throws.h"

namespace sol::pretrain {
namespace {

TEST(WindowOrder, AnEpochCutsTheWholeTextOnce) {
  std::vector<int32_t> ids(1000);
  std::iota(ids.begin(), ids.end(), 0);
  WindowOrder order(ids, 30, 5);
  for (int64_t epoch = 0; epoch < 3; ++epoch) {
    std::set<int32_t> seen;
    for (int64_t i = 0; i < order.per_epoch(); ++i) {
      const auto window = order.window(epoch * order.per_epoch() + i);
      ASSERT_EQ(window.size(), 31u);
      EXPECT_TRUE(seen.insert(window[0]).second);
      EXPECT_EQ(window[30], window[0] + 30);  // one piece
      EXPECT_EQ((window[0] - *seen.begin()) % 30, 0);
    }
    EXPECT_GE(static_cast<int>(seen.size()) * 30, 1000 - 2 * 30);
  }
}

TEST(WindowOrder, APositionNeedsNoHistory) {
  std::vector<int32_t> ids(1000);
  std::iota(ids.begin(), ids.end(), 0);
  WindowOrder walked(ids, 30, 5), jumped(ids, 30, 5), other(ids, 30, 6);
  for (int64_t i = 0; i < 77; ++i) walked.window(i);
  EXPECT_EQ(walked.window(77)[0], jumped.window(77)[0]);
  int same = 0;
  for (int64_t i = 0; i < 30; ++i) same += walked.window(i)[0] == other.window(i)[0];
  EXPECT_LT(same, 10);
  const Batch batch = jumped.batch(40, 2);
  EXPECT_EQ(batch.windows(), 2);
  EXPECT_EQ(batch.get(1)[0], walked.window(41)[0]);
}

TEST(WindowOrder, TooLittleTextIsAnError) {
  const std::vector<int32_t> ids(40);
  EXPECT_THAT([&] { WindowOrder(ids, 30, 1); }, test::throws({"40 tokens", "windows of 30"}));
}

}  // namespace
}  // namespace sol::pretrain
