// A fresh policy network.
#pragma once

#include <cstdint>

#include "policy/network.h"

namespace sol {

// PyTorch's default initialisation (Linear: uniform within ±1/√fan_in for weights, which is its
// Kaiming rule with a = √5, and biases; Embedding: standard normal; LayerNorm: 1 and 0), biases of
// `pi` and `v` zero, from counter-based draws.
Parameters initial_parameters(const PolicyNetworkShape& shape, uint64_t seed);

}  // namespace sol
