#include "evaluation/density.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "sol/error.h"

namespace sol {
namespace {

TEST(KernelDensity, OneValueIsTheKernelItself) {
  const std::vector<double> values{2.0};
  const std::vector<double> at{2.0, 2.5};
  const auto density = kernel_density(values, 0.5, at);
  const double peak = 1 / (0.5 * std::sqrt(2 * std::numbers::pi));
  EXPECT_NEAR(density[0], peak, 1e-12);
  EXPECT_NEAR(density[1], peak * std::exp(-0.5), 1e-12);
}

TEST(KernelDensity, IntegratesToOne) {
  std::vector<double> values, ordinates;
  for (int i = 0; i < 50; ++i) {
    values.push_back(std::sin(i * 1.7));
    ordinates.push_back(10 + std::cos(i * 2.3));
  }
  const auto at = evenly_spaced(-4, 4, 401);
  double sum = 0;
  for (const double density : kernel_density(values, kernel_bandwidth(values), at))
    sum += density * 8 / 400;
  EXPECT_NEAR(sum, 1, 1e-3);

  const auto y_at = evenly_spaced(6, 14, 201), x_at = evenly_spaced(-4, 4, 201);
  double volume = 0;
  for (const double density : kernel_density_2d(values, ordinates, 0.3, 0.2, x_at, y_at))
    volume += density * 8 / 200 * 8 / 200;
  EXPECT_NEAR(volume, 1, 1e-3);
}

TEST(KernelDensity, RowsOfThePlaneAreOrdinates) {
  const std::vector<double> x{0, 0.1, -0.1}, y{5, 5.1, 4.9};
  const std::vector<double> x_at{0, 3}, y_at{1, 5};
  const auto density = kernel_density_2d(x, y, 0.1, 0.1, x_at, y_at);
  ASSERT_EQ(density.size(), 4u);
  EXPECT_EQ(std::max_element(density.begin(), density.end()) - density.begin(), 2);  // (0, 5)
}

TEST(KernelBandwidth, IsSilvermansRule) {
  // Deviation 1.5811, quartiles 2 and 4: the smaller of 1.5811 and 2 / 1.34.
  const std::vector<double> values{1, 2, 3, 4, 5};
  EXPECT_NEAR(kernel_bandwidth(values), 0.9 * (2 / 1.34) * std::pow(5, -0.2), 1e-12);
  EXPECT_NEAR(kernel_bandwidth(values, 2), 0.9 * (2 / 1.34) * std::pow(5, -1.0 / 6), 1e-12);
  EXPECT_GT(kernel_bandwidth(std::vector<double>{3, 3, 3}), 0);
  EXPECT_THROW(kernel_bandwidth(std::vector<double>{}), Error);
}

TEST(EvenlySpaced, IncludesBothEnds) {
  EXPECT_EQ(evenly_spaced(1, 2, 5), (std::vector<double>{1, 1.25, 1.5, 1.75, 2}));
  EXPECT_THROW(evenly_spaced(1, 2, 1), Error);
}

}  // namespace
}  // namespace sol
