#include "evaluation/budget_grid.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "sol/error.h"
#include "throws.h"

namespace sol {
namespace {

using testing::DoubleNear;
using testing::Pointwise;

ActionSpace harsh_space() {
  return ActionSpace({0.02f, 1.0f}, {0.3f, 1.0f}, {3, 16});
}
const BudgetRanges ranges{{0.02, 1}, {0.3, 1}, {3.0 / 16, 1}};

TEST(AxisValues, AreRangesListsOrOneValue) {
  EXPECT_THAT(parse_axis_values("0.1:0.9:0.2", "x"),
              Pointwise(DoubleNear(1e-12), {0.1, 0.3, 0.5, 0.7, 0.9}));
  EXPECT_THAT(parse_axis_values("5:13:1", "x"),
              Pointwise(DoubleNear(1e-12), {5., 6., 7., 8., 9., 10., 11., 12., 13.}));
  EXPECT_THAT(parse_axis_values("0.2,0.5,1", "x"), Pointwise(DoubleNear(0), {0.2, 0.5, 1.0}));
  EXPECT_THAT(parse_axis_values("0.5", "x"), Pointwise(DoubleNear(0), {0.5}));
  EXPECT_THAT(parse_axis_values("0.5:0.5:1", "x"), Pointwise(DoubleNear(0), {0.5}));
  for (const char* bad : {"", "a", "0.1:0.9", "0.9:0.1:0.2", "0:1:0", "0:1:-1", "0:1:1e-9", "1,,2",
                          "1:2:3:4", "nan", "0.5x", "0.5,0.5"})
    EXPECT_THROW(parse_axis_values(bad, "--keep"), Error) << bad;
}

TEST(BudgetGrid, ThePapersHas567Points) {
  const auto grid = make_budget_grid({.kind = GridRequest::Kind::paper}, harsh_space(), ranges);
  ASSERT_EQ(grid.size(), 567u);
  EXPECT_FLOAT_EQ(grid.front().kappa, 0.15f);
  EXPECT_FLOAT_EQ(grid.front().rho, 0.4f);
  EXPECT_FLOAT_EQ(grid.front().eta, 5.0f / 16);
  EXPECT_FLOAT_EQ(grid.back().kappa, 0.95f);
  EXPECT_FLOAT_EQ(grid.back().rho, 1.0f);
  EXPECT_LE(grid.back().rho, 1.0f);
  EXPECT_FLOAT_EQ(grid.back().eta, 13.0f / 16);
}

TEST(BudgetGrid, TheAutomaticOneFillsTheTrainedRanges) {
  for (const auto& [space, least] :
       {std::pair{harsh_space(), 216u}, std::pair{ActionSpace({0.1f, 1}, {1.0f}, {3, 16}), 225u},
        std::pair{ActionSpace({1.0f}, {0.3f, 1}, {16}), 200u},
        std::pair{ActionSpace({1.0f}, {1.0f}, {16}), 1u}}) {
    const auto grid = make_budget_grid({}, space, ranges);
    EXPECT_EQ(grid.size(), least);
    double sum = 0;
    std::set<std::array<float, 3>> different;
    for (const Budget& budget : grid) {
      different.insert({budget.kappa, budget.rho, budget.eta});
      if (space.on(Axis::rho)) {
        EXPECT_GT(budget.rho, 0.3f);
        EXPECT_LT(budget.rho, 1.0f);
      } else {
        EXPECT_EQ(budget.rho, 1.0f);
      }
      sum += static_cast<double>(budget.rho);
    }
    EXPECT_EQ(different.size(), grid.size());
    // The mean of the grid is the mean of the range.
    if (space.on(Axis::rho)) {
      EXPECT_NEAR(sum / static_cast<double>(grid.size()), 0.65, 1e-6);
    }
  }
}

TEST(BudgetGrid, OwnValuesReplaceAnAxis) {
  GridRequest request;
  request.kappa = AxisValues{0.5};
  request.bits = AxisValues{4, 8};
  const auto grid = make_budget_grid(request, harsh_space(), ranges);
  EXPECT_EQ(grid.size(), 1u * 6 * 2);
  EXPECT_FLOAT_EQ(grid[0].eta, 0.25f);
  EXPECT_THAT(describe_grid(request, grid), testing::HasSubstr("12 budgets: κ 0.5; ρ 6 values"));
  request.kappa = AxisValues{1.5};
  EXPECT_THROW(make_budget_grid(request, harsh_space(), ranges), Error);
  request.kappa = AxisValues{0.5};
  request.bits = AxisValues{17};
  EXPECT_THROW(make_budget_grid(request, harsh_space(), ranges), Error);
}

TEST(BudgetGrid, AnAxisThatIsOffHasItsLevel) {
  const auto grid = make_budget_grid({.kind = GridRequest::Kind::paper},
                                     ActionSpace({0.1f, 1}, {1.0f}, {8}), ranges);
  EXPECT_EQ(grid.size(), 9u);
  for (const Budget& budget : grid) {
    EXPECT_EQ(budget.rho, 1.0f);
    EXPECT_EQ(budget.eta, 0.5f);
  }
}

TEST(BudgetGrid, ValuesForAnAxisThatIsOffAreAnError) {
  const ActionSpace space({0.1f, 1}, {0.3f}, {8});
  GridRequest request;
  request.rho = AxisValues{0.5};
  EXPECT_THAT([&] { make_budget_grid(request, space, ranges); }, test::throws({"prune", "0.3"}));
  request.rho = AxisValues{0.3};  // what it is anyway
  request.bits = AxisValues{8};
  EXPECT_EQ(make_budget_grid(request, space, ranges).size(), 200u);
  request.bits = AxisValues{8, 9};
  EXPECT_THAT([&] { make_budget_grid(request, space, ranges); }, test::throws({"bits", "8"}));
}

TEST(BudgetGrid, IsBounded) {
  GridRequest request;
  request.kappa = request.rho = parse_axis_values("0:0.9:0.001", "x");
  request.bits = parse_axis_values("3:12:0.01", "x");
  EXPECT_THAT([&] { make_budget_grid(request, harsh_space(), ranges); },
              test::throws({"901 x 901 x 901", "100000"}));
}

}  // namespace
}  // namespace sol
