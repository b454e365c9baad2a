// Fits of three slopes, one per axis.
#pragma once

#include <array>
#include <cstddef>

namespace sol {

using Slopes = std::array<double, 3>;

// Sums over the points (x, y) of x xᵀ and x y; add() takes one.
struct NormalEquations {
  std::array<Slopes, 3> squares{};
  Slopes products{};

  void add(const Slopes& x, double y) {
    for (size_t i = 0; i < 3; ++i) {
      products[i] += x[i] * y;
      for (size_t j = 0; j < 3; ++j) squares[i][j] += x[i] * x[j];
    }
  }

  // The slopes of least squares, by elimination; 0 for an axis that does not vary, as a little is
  // added to the diagonal (no eigenvalue is negative).
  Slopes solve() const {
    std::array<Slopes, 3> a = squares;
    Slopes b = products;
    const double little = 1e-6 * (a[0][0] + a[1][1] + a[2][2]) + 1e-12;
    for (size_t i = 0; i < 3; ++i) a[i][i] += little;
    for (size_t i = 0; i < 3; ++i)
      for (size_t j = i + 1; j < 3; ++j) {
        const double factor = a[j][i] / a[i][i];
        for (size_t k = i; k < 3; ++k) a[j][k] -= factor * a[i][k];
        b[j] -= factor * b[i];
      }
    for (size_t i = 3; i-- > 0;) {
      for (size_t k = i + 1; k < 3; ++k) b[i] -= a[i][k] * b[k];
      b[i] /= a[i][i];
    }
    return b;
  }
};

}  // namespace sol
