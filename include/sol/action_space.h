// The set of actions a policy chooses from: the product of the levels of three axes.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "sol/action.h"

namespace sol {

enum class Axis { kappa = 0, rho = 1, eta = 2 };
inline constexpr std::array<Axis, 3> all_axes{Axis::kappa, Axis::rho, Axis::eta};

class ActionSpace {
 public:
  // Levels in ascending order. Throws Error for an empty axis, a level out of range, not ascending
  // or given twice (also two levels with one name).
  ActionSpace(std::vector<float> kappa, std::vector<float> rho, std::vector<int> bits);

  // The reference's notation: keep fractions {0.1, 1.0}, {"s60", "s100"} and {"q5", "q16"}; sorts.
  static ActionSpace from_notation(const std::vector<double>& keep,
                                   const std::vector<std::string>& prune,
                                   const std::vector<std::string>& quant);

  int size() const;
  Action action(int index) const;         // κ slowest, then ρ, bits fastest
  int index(const Action& action) const;  // throws Error when the action is not in the space
  int index(int kappa_level, int rho_level, int bits_level) const;
  int dense_index() const;  // the densest level of each axis: the last one

  const std::vector<float>& kappa() const { return kappa_; }
  const std::vector<float>& rho() const { return rho_; }
  const std::vector<int>& bits() const { return bits_; }
  std::vector<float> levels(Axis axis) const;  // in budget units: κ, ρ, bits / 16
  bool on(Axis axis) const;                    // more than one level

  // An axis that is off has its only level as its budget (docs/arithmetic.md, "Steps that count").
  Budget clamp_off_axes(Budget budget) const;
  // Mean of the budget over the axes that are on (paper, "net keep-rate"); 1 when none is.
  double net_keep_rate(const Budget& budget) const;

  std::vector<std::string> prune_notation() const;  // "s60", ...
  std::vector<std::string> quant_notation() const;  // "q5", ...
  bool operator==(const ActionSpace&) const = default;

 private:
  std::vector<float> kappa_, rho_;
  std::vector<int> bits_;
};

}  // namespace sol
