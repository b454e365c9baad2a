// The prices that spending is charged at (training/spending_price.h), as they are logged and
// resumed.
#pragma once

#include <array>

namespace sol {

// Shares of the way from an axis' lowest level to its highest at which there is a price: 0, 0.1 ..
// 1.
inline constexpr int price_places = 11;
// Per axis (κ, ρ, η) and place: for the whole of that way, in the reward's unit per step.
using PriceTable = std::array<std::array<double, price_places>, 3>;

}  // namespace sol
