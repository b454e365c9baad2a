#include "policy/network_weights.h"

#include <fmt/format.h>

namespace sol {
namespace {

const float* values(const Parameters& parameters, const std::string& name) {
  return parameters.at(name).values.data();
}

kernels::WeightView view(const float* data, int out, int in) {
  return {data, kernels::WeightType::f32, kernels::Layout::out_major, in, out, in};
}

LinearView linear(const Parameters& parameters, const std::string& name, bool bias = true) {
  const Parameter& weight = parameters.at(name + ".weight");
  return {view(weight.values.data(), static_cast<int>(weight.shape[0]),
               static_cast<int>(weight.shape[1])),
          bias ? values(parameters, name + ".bias") : nullptr};
}

NormView norm(const Parameters& parameters, const std::string& name) {
  return {values(parameters, name + ".weight"), values(parameters, name + ".bias")};
}

void append(std::vector<float>& to, const std::vector<float>& from) {
  to.insert(to.end(), from.begin(), from.end());
}

}  // namespace

PolicyNetwork::Weights::Weights(const PolicyNetworkShape& shape, const Parameters& parameters)
    : action_embedding(values(parameters, "action_emb.weight")),
      position(values(parameters, "pos_emb.weight")),
      scalar(linear(parameters, "scalar_proj.0")),
      observation(linear(parameters, "obs_proj")),
      budget(linear(parameters, "budget_head.0")),
      scalar_norm(norm(parameters, "scalar_proj.2")),
      final_norm(norm(parameters, "ln_f")),
      blocks(static_cast<size_t>(shape.layers)) {
  const int d = shape.d_model;
  for (int layer = 0; layer < shape.layers; ++layer) {
    const std::string name = fmt::format("blocks.{}.", layer);
    Block& block = blocks[static_cast<size_t>(layer)];
    block.norm1 = norm(parameters, name + "ln1");
    block.norm2 = norm(parameters, name + "ln2");
    for (const char* projection : {"q_proj", "k_proj", "v_proj"})
      append(block.qkv_values, parameters.at(name + "attn." + projection + ".weight").values);
    block.qkv = {view(block.qkv_values.data(), 3 * d, d), nullptr};
    block.output = linear(parameters, name + "attn.o_proj", false);
    block.up = linear(parameters, name + "ff.0");
    block.down = linear(parameters, name + "ff.2");
  }

  const std::vector<float>& pi = parameters.at("pi.weight").values;
  const std::vector<float>& budget_out = parameters.at("budget_head.2.weight").values;
  const std::vector<float>& pi_bias = parameters.at("pi.bias").values;
  const std::vector<float>& budget_bias = parameters.at("budget_head.2.bias").values;
  head_values.reserve(pi.size() + budget_out.size());
  for (int action = 0; action < shape.actions; ++action) {
    head_values.insert(head_values.end(), pi.begin() + int64_t{action} * d,
                       pi.begin() + int64_t{action + 1} * d);
    head_values.insert(head_values.end(), budget_out.begin() + int64_t{action} * budget_width,
                       budget_out.begin() + int64_t{action + 1} * budget_width);
    head_bias.push_back(pi_bias[static_cast<size_t>(action)] +
                        budget_bias[static_cast<size_t>(action)]);
  }
  head = {view(head_values.data(), shape.actions, d + budget_width), head_bias.data()};
}

}  // namespace sol
