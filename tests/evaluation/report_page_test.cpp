#include "evaluation/report_page.h"

#include <gtest/gtest.h>

namespace sol {
namespace {

TEST(LevelsInWords, LeaveOutWhatIsAlwaysDense) {
  EXPECT_EQ(levels_in_words(ActionSpace({0.1f, 1.0f}, {1.0f}, {5, 16})), "κ {0.1, 1}, q {5, 16}");
  EXPECT_EQ(levels_in_words(ActionSpace({1.0f}, {0.6f}, {16})), "ρ {0.6}");
  EXPECT_EQ(levels_in_words(ActionSpace({0.02f, 0.05f, 0.1f, 0.5f, 1.0f}, {1.0f}, {16})),
            "κ {5 levels 0.02 .. 1}");
  EXPECT_EQ(levels_in_words(ActionSpace({1.0f}, {1.0f}, {16})), "");
}

}  // namespace
}  // namespace sol
