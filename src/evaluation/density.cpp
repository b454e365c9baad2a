#include "evaluation/density.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/fail.h"
#include "evaluation/statistics.h"

namespace sol {
namespace {

double gaussian(double distance, double bandwidth) {
  const double z = distance / bandwidth;
  return std::exp(-0.5 * z * z) / (bandwidth * std::sqrt(2 * std::numbers::pi));
}

}  // namespace

double kernel_bandwidth(std::span<const double> values, int dimensions) {
  std::vector<double> sorted(values.begin(), values.end());
  const double deviation = mean_deviation(values).deviation;
  const double range = (quantile(sorted, 0.75) - quantile(sorted, 0.25)) / 1.34;
  // Many equal values make the range 0 though there is spread.
  const double spread = range > 0 ? std::min(deviation, range) : deviation;
  const double n = static_cast<double>(values.size());
  return std::max(0.9 * spread * std::pow(n, -1.0 / (4 + dimensions)), 1e-9);
}

std::vector<double> kernel_density(std::span<const double> values, double bandwidth,
                                   std::span<const double> at) {
  if (values.empty()) fail("the density of no value at all");
  std::vector<double> density;
  for (const double point : at) {
    double sum = 0;
    for (const double value : values) sum += gaussian(point - value, bandwidth);
    density.push_back(sum / static_cast<double>(values.size()));
  }
  return density;
}

std::vector<double> kernel_density_2d(std::span<const double> x, std::span<const double> y,
                                      double x_width, double y_width, std::span<const double> x_at,
                                      std::span<const double> y_at) {
  if (x.size() != y.size()) fail("a density of {} abscissas and {} ordinates", x.size(), y.size());
  std::vector<double> density(x_at.size() * y_at.size(), 0.0);
  std::vector<double> across(x_at.size());
  const double share = 1.0 / static_cast<double>(x.size());
  for (size_t i = 0; i < x.size(); ++i) {
    for (size_t column = 0; column < x_at.size(); ++column)
      across[column] = share * gaussian(x_at[column] - x[i], x_width);
    for (size_t row = 0; row < y_at.size(); ++row) {
      const double down = gaussian(y_at[row] - y[i], y_width);
      for (size_t column = 0; column < x_at.size(); ++column)
        density[row * x_at.size() + column] += across[column] * down;
    }
  }
  return density;
}

std::vector<double> evenly_spaced(double low, double high, int count) {
  if (count < 2) fail("{} values from {} to {}: at least two are needed", count, low, high);
  std::vector<double> values;
  for (int i = 0; i < count; ++i) values.push_back(low + (high - low) * i / (count - 1));
  return values;
}

}  // namespace sol
