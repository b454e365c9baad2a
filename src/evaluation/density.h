// Kernel density estimates, for figures of distributions.
#pragma once

#include <span>
#include <vector>

namespace sol {

// Silverman's rule of thumb for a Gaussian kernel in `dimensions` dimensions: with 1, 0.9 *
// min(deviation, interquartile range / 1.34) * n^(-1/5). At least 1e-9, so that equal values have a
// density. Throws Error for no value at all.
double kernel_bandwidth(std::span<const double> values, int dimensions = 1);

// Density of a Gaussian kernel estimate of `values` at each of `at`.
std::vector<double> kernel_density(std::span<const double> values, double bandwidth,
                                   std::span<const double> at);

// Of pairs (x[i], y[i]), with a product kernel of these widths, at the grid's points, row by row of
// y_at.
std::vector<double> kernel_density_2d(std::span<const double> x, std::span<const double> y,
                                      double x_width, double y_width, std::span<const double> x_at,
                                      std::span<const double> y_at);

// `count` values from low to high, both included.
std::vector<double> evenly_spaced(double low, double high, int count);

}  // namespace sol
