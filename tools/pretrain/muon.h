// Muon's direction for one matrix, on one thread (Jordan et al. 2024).
#pragma once

#include <cstdint>
#include <vector>

#include "base/bfloat16.h"

namespace sol::pretrain {

// Coefficients of the quintic x -> a x + b x³ + c x⁵ that takes singular values from (0, 1] to
// about 1 (0.7 to 1.2) in this many steps.
inline constexpr double muon_a = 3.4445, muon_b = -4.7750, muon_c = 2.0315;
inline constexpr int muon_steps = 5;

// Nesterov's momentum: what a step looks back on, and ahead by.
inline constexpr float muon_momentum = 0.95f;

// With this factor times the root of its larger side an orthogonal matrix has the root mean square
// that AdamW's updates have, so that rate and decay are AdamW's (Liu et al. 2025, "Muon is
// scalable").
inline constexpr double muon_scale = 0.2;

class Muon {
 public:
  // The matrix [rows, columns] with u's singular vectors and singular values near 1, by BF16
  // products. Valid until the next call.
  const float* orthogonalise(const float* u, int64_t rows, int64_t columns);

 private:
  std::vector<float> x_, gram_, polynomial_, change_, out_;
  std::vector<bf16> x16_, gram16_, polynomial16_;
};

}  // namespace sol::pretrain
