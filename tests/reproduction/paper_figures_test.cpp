#include "reproduction/paper_figures.h"

#include "support.h"
#include "training/config.h"

namespace sol {
namespace {

// The paper's table of paired comparisons: 2L, 11.51 against 11.89, better at 95.3 % of the
// budgets.
TEST(PaperFigures, AreOfTheControllersOfThePaper) {
  const PaperComparison* found =
      paper_comparison("2l", ActionSpace({0.1f, 1.0f}, {0.6f, 1.0f}, {5, 16}));
  ASSERT_NE(found, nullptr);
  EXPECT_NEAR(found->relative, -0.0322, 1e-4);
  EXPECT_DOUBLE_EQ(found->win_rate, 0.953);
}

TEST(PaperFigures, AreOfTheLevelsOfOurConfigurations) {
  for (const char* name :
       {"2l", "3l", "t4", "t16", "t64", "llama-3.2-3b", "llama-3.1-8b-instruct"}) {
    const auto file = test::source_dir() / "configs" / (std::string(name) + ".yaml");
    EXPECT_NE(paper_comparison(name, load_training_config(file, {}).space), nullptr) << name;
  }
}

// 9.14 against 9.46 and 7.93 against 8.20; the same levels on the smallest model are not in it.
TEST(PaperFigures, OtherModelsHaveTheirOwn) {
  const ActionSpace space =
      load_training_config(test::source_dir() / "configs/llama-3.2-3b.yaml", {}).space;
  const PaperComparison* small = paper_comparison("llama-3.2-3b", space);
  const PaperComparison* large = paper_comparison("llama-3.1-8b-instruct", space);
  ASSERT_TRUE(small && large);
  EXPECT_NEAR(small->relative, -0.0346, 1e-4);
  EXPECT_DOUBLE_EQ(small->win_rate, 0.955);
  EXPECT_NEAR(large->relative, -0.0329, 1e-4);
  EXPECT_DOUBLE_EQ(large->win_rate, 0.889);
  EXPECT_EQ(paper_comparison("fl", space), nullptr);
}

TEST(PaperFigures, OtherLevelsOfThatNameHaveNone) {
  EXPECT_EQ(paper_comparison("2l", ActionSpace({0.02f, 1.0f}, {0.3f, 1.0f}, {3, 16})), nullptr);
  EXPECT_EQ(paper_comparison("2l", ActionSpace({0.1f, 1.0f}, {1.0f}, {16})), nullptr);
  EXPECT_EQ(paper_comparison("2l", ActionSpace({0.1f, 1.0f}, {0.3f, 1.0f}, {5, 16})), nullptr);
  EXPECT_EQ(paper_comparison("2l", ActionSpace({0.1f, 0.5f}, {0.6f, 1.0f}, {5, 16})), nullptr);
  EXPECT_EQ(paper_comparison("mine", ActionSpace({0.1f, 1.0f}, {0.6f, 1.0f}, {5, 16})), nullptr);
}

}  // namespace
}  // namespace sol
