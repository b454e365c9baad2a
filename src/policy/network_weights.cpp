#include "policy/network_weights.h"

#include <fmt/format.h>

namespace sol {
namespace {

constexpr size_t floats_per_line = 16;

const float* values(const Parameters& parameters, const std::string& name) {
  return parameters.at(name).values.data();
}

NormView norm(const Parameters& parameters, const std::string& name) {
  return {values(parameters, name + ".weight"), values(parameters, name + ".bias")};
}

// Floats of memory that hold all matrices, each from a cache line on.
size_t most_floats(const Parameters& parameters) {
  size_t count = 0;
  for (const auto& [name, parameter] : parameters)
    count += parameter.values.size() + floats_per_line;
  return count;
}

}  // namespace

// The matrices of these names, of rows of one length, as one: their rows one below the other.
kernels::WeightView PolicyNetwork::Weights::copy(const Parameters& parameters,
                                                 std::initializer_list<std::string> names) {
  const size_t begin = matrices_.size();
  int64_t out = 0;
  for (const std::string& name : names) {
    const Parameter& matrix = parameters.at(name);
    matrices_.insert(matrices_.end(), matrix.values.begin(), matrix.values.end());
    out += matrix.shape[0];
  }
  return end_matrix(begin, static_cast<int>(out));
}

// What was appended since `begin`, as a matrix of `out` rows.
kernels::WeightView PolicyNetwork::Weights::end_matrix(size_t begin, int out) {
  const int in = static_cast<int>(matrices_.size() - begin) / out;
  matrices_.resize((matrices_.size() + floats_per_line - 1) / floats_per_line * floats_per_line);
  return {
      matrices_.data() + begin, kernels::WeightType::f32, kernels::Layout::out_major, in, out, in};
}

LinearView PolicyNetwork::Weights::linear(const Parameters& parameters, const std::string& name,
                                          bool bias) {
  return {copy(parameters, {name + ".weight"}),
          bias ? values(parameters, name + ".bias") : nullptr};
}

PolicyNetwork::Weights::Weights(const PolicyNetworkShape& shape, const Parameters& parameters)
    : action_embedding(values(parameters, "action_emb.weight")),
      position(values(parameters, "pos_emb.weight")),
      scalar_norm(norm(parameters, "scalar_proj.2")),
      final_norm(norm(parameters, "ln_f")),
      blocks(static_cast<size_t>(shape.layers)) {
  matrices_.reserve(most_floats(parameters));  // so that none of them moves
  scalar = linear(parameters, "scalar_proj.0");
  observation = linear(parameters, "obs_proj");
  budget = linear(parameters, "budget_head.0");
  const int d = shape.d_model;
  for (int layer = 0; layer < shape.layers; ++layer) {
    const std::string name = fmt::format("blocks.{}.", layer);
    Block& block = blocks[static_cast<size_t>(layer)];
    block.norm1 = norm(parameters, name + "ln1");
    block.norm2 = norm(parameters, name + "ln2");
    block.qkv.weight = copy(parameters, {name + "attn.q_proj.weight", name + "attn.k_proj.weight",
                                         name + "attn.v_proj.weight"});
    block.output = linear(parameters, name + "attn.o_proj", false);
    block.up = linear(parameters, name + "ff.0");
    block.down = linear(parameters, name + "ff.2");
  }

  const std::vector<float>& pi = parameters.at("pi.weight").values;
  const std::vector<float>& budget_out = parameters.at("budget_head.2.weight").values;
  const std::vector<float>& pi_bias = parameters.at("pi.bias").values;
  const std::vector<float>& budget_bias = parameters.at("budget_head.2.bias").values;
  const size_t begin = matrices_.size();
  for (int action = 0; action < shape.actions; ++action) {
    matrices_.insert(matrices_.end(), pi.begin() + int64_t{action} * d,
                     pi.begin() + int64_t{action + 1} * d);
    matrices_.insert(matrices_.end(), budget_out.begin() + int64_t{action} * budget_width,
                     budget_out.begin() + int64_t{action + 1} * budget_width);
    head_bias.push_back(pi_bias[static_cast<size_t>(action)] +
                        budget_bias[static_cast<size_t>(action)]);
  }
  head = {end_matrix(begin, shape.actions), head_bias.data()};
}

}  // namespace sol
