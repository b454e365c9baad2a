// One axis of a budget or an action, in budget units (κ, ρ, bits / 16).
#pragma once

#include <string_view>

#include "sol/action_space.h"

namespace sol {

inline float value(const Budget& budget, Axis axis) {
  switch (axis) {
    case Axis::kappa:
      return budget.kappa;
    case Axis::rho:
      return budget.rho;
    case Axis::eta:
      return budget.eta;
  }
  return 0.0f;
}

inline float& value(Budget& budget, Axis axis) {
  if (axis == Axis::kappa) return budget.kappa;
  if (axis == Axis::rho) return budget.rho;
  return budget.eta;
}

inline std::string_view name(Axis axis) {
  if (axis == Axis::kappa) return "kappa";
  if (axis == Axis::rho) return "rho";
  return "eta";
}

}  // namespace sol
