// The policy network's inference: a small causal transformer over an episode's steps
// (docs/arithmetic.md, "Policy network"; names and shapes follow the reference's state_dict).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "kernels/matmul.h"
#include "sol/policy.h"

namespace sol {

struct PolicyNetworkShape {
  int hidden_size = 0;  // of the frozen model: h and e(x)
  int actions = 0;      // A
  int d_model = 512;
  int heads = 4;
  int layers = 1;
  double mlp_ratio = 4.0;
  int action_dim = 32;
  int max_length = 1024;  // learned positions, at least the horizon
  // Whether it is shown the surprisal of the step's token beside the eight features, which is not
  // in the paper (docs/arithmetic.md, "The surprisal as a feature").
  bool surprisal = false;
  bool operator==(const PolicyNetworkShape&) const = default;
};

// Of an observation: the eight features, then, if shown, the surprisal in units of surprisal_unit,
// which brings it to the size of the others.
inline int scalar_count(const PolicyNetworkShape& shape) {
  return feature_count + (shape.surprisal ? 1 : 0);
}
inline constexpr float surprisal_unit = 5.0f;  // nats

// A parameter's values; the names are the reference's ("blocks.0.attn.q_proj.weight", ...).
struct Parameter {
  std::vector<int64_t> shape;
  std::vector<float> values;
};
using Parameters = std::map<std::string, Parameter>;

// Throws Error naming the field that is not positive, beyond reason or does not divide as it must.
void check_policy_network_shape(const PolicyNetworkShape& shape);

// All parameters' names and shapes for a network, value head included.
std::map<std::string, std::vector<int64_t>> policy_parameter_shapes(
    const PolicyNetworkShape& shape);

// Throws Error naming the parameter that is missing, superfluous, misshapen or not finite.
void check_parameters(const PolicyNetworkShape& shape, const Parameters& parameters);

// An identity of names, shapes and values: 32 hexadecimal digits.
std::string parameters_checksum(const Parameters& parameters);

class PolicyNetwork {
 public:
  // Throws Error naming the parameter that is missing, superfluous, misshapen or not finite.
  PolicyNetwork(const PolicyNetworkShape& shape, Parameters parameters);
  ~PolicyNetwork();

  const PolicyNetworkShape& shape() const { return shape_; }
  const Parameters& parameters() const { return parameters_; }
  int64_t parameter_count() const;

  // Keys and values of one episode's steps so far.
  class State {
   public:
    int length = 0;
    std::vector<std::vector<float>> keys, values;  // per layer, [length][d_model]
  };

  struct Input {
    State* state;
    const float* hidden;     // [hidden_size]
    const float* embedding;  // [hidden_size]
    Features features;
    int previous_action;  // -1: start symbol
    float* logits;        // out [actions], before division by any temperature
    float surprisal = 0;  // -log p(x_t), nats; read where the shape says so
  };
  // One step of every input's episode, batched on all threads; a state may occur once only. With
  // MatmulMode::own an input's logits do not depend on the batch or the threads, bit for bit.
  // Throws Error when an episode outgrows max_length (nothing has changed then).
  void step(std::span<const Input> inputs,
            kernels::MatmulMode mode = kernels::MatmulMode::library) const;

 private:
  struct Weights;  // the parameters, arranged for step()
  class Pass;      // one batched step
  PolicyNetworkShape shape_;
  Parameters parameters_;
  std::unique_ptr<const Weights> weights_;
};

}  // namespace sol
