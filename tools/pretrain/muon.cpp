#include "muon.h"

#include <algorithm>
#include <cmath>

#include "loops.h"
#include "product.h"

namespace sol::pretrain {
namespace {

void transpose(const float* from, int64_t rows, int64_t columns, float* to) {
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j) to[j * rows + i] = from[i * columns + j];
}

}  // namespace

const float* Muon::orthogonalise(const float* u, int64_t rows, int64_t columns) {
  // Lying, so that the products with its own transpose are small.
  const bool standing = rows > columns;
  const int64_t r = std::min(rows, columns), c = std::max(rows, columns), n = r * c;
  const auto size = [](auto& v, int64_t count) { v.resize(static_cast<size_t>(count)); };
  for (auto* v : {&x_, &change_}) size(*v, n);
  for (auto* v : {&gram_, &polynomial_}) size(*v, r * r);
  for (auto* v : {&gram16_, &polynomial16_}) size(*v, r * r);
  size(x16_, n);
  if (standing) {
    transpose(u, rows, columns, x_.data());
  } else {
    std::copy_n(u, n, x_.data());
  }
  const auto scale = static_cast<float>(1 / (std::sqrt(square_sum(u, n)) + 1e-20));
  for (float& x : x_) x *= scale;
  for (int step = 0; step < muon_steps; ++step) {
    round_row(x_.data(), n, x16_.data());
    multiply(rows_of(x16_.data(), c), transposed(x16_.data(), c), r, c, r, gram_.data(), r, false);
    round_row(gram_.data(), r * r, gram16_.data());
    multiply(rows_of(gram16_.data(), r), rows_of(gram16_.data(), r), r, r, r, polynomial_.data(), r,
             false);
    for (size_t i = 0; i < gram_.size(); ++i)
      polynomial_[i] =
          static_cast<float>(muon_b) * gram_[i] + static_cast<float>(muon_c) * polynomial_[i];
    round_row(polynomial_.data(), r * r, polynomial16_.data());
    multiply(rows_of(polynomial16_.data(), r), rows_of(x16_.data(), c), r, r, c, change_.data(), c,
             false);
    for (size_t i = 0; i < x_.size(); ++i) x_[i] = static_cast<float>(muon_a) * x_[i] + change_[i];
  }
  if (!standing) return x_.data();
  size(out_, n);
  transpose(x_.data(), columns, rows, out_.data());
  return out_.data();
}

}  // namespace sol::pretrain
