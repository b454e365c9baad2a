// The policy network's parameters as step() reads them, and its fixed widths.
#pragma once

#include <initializer_list>
#include <string>
#include <vector>

#include "base/large_memory.h"
#include "kernels/matmul.h"
#include "policy/network.h"

namespace sol {

inline constexpr int scalar_width = 64;  // of the features' embedding
inline constexpr int budget_width = 32;  // of the budget head's hidden layer

inline int mlp_width(const PolicyNetworkShape& shape) {
  return static_cast<int>(shape.mlp_ratio * shape.d_model);
}
// concat(h, e(x), features, previous action).
inline int observation_width(const PolicyNetworkShape& shape) {
  return 2 * shape.hidden_size + scalar_width + shape.action_dim;
}

// y = x Wᵀ + b; `bias` may be null.
struct LinearView {
  kernels::WeightView weight;
  const float* bias = nullptr;
};

struct NormView {
  const float* weight = nullptr;
  const float* bias = nullptr;
};

// Matrices are copied, into huge pages and so that one product can do the work of several; the rest
// are views of the parameters.
struct PolicyNetwork::Weights {
  Weights(const PolicyNetworkShape& shape, const Parameters& parameters);

  struct Block {
    NormView norm1, norm2;
    LinearView qkv;  // queries, keys and values: [3 d_model][d_model]
    LinearView output, up, down;
  };

  const float* action_embedding;  // [actions + 1][action_dim]; the last row is the start symbol
  const float* position;          // [max_length][d_model]
  LinearView scalar, observation, budget;
  NormView scalar_norm, final_norm;
  std::vector<Block> blocks;
  // Action logits and budget head as one product over concat(x, budget): [actions][d_model + 32].
  std::vector<float> head_bias;
  LinearView head;

 private:
  kernels::WeightView copy(const Parameters& parameters, std::initializer_list<std::string> names);
  kernels::WeightView end_matrix(size_t begin, int out);
  LinearView linear(const Parameters& parameters, const std::string& name, bool bias = true);

  LargeVector<float> matrices_;  // one behind the other, each from a cache line on
};

}  // namespace sol
