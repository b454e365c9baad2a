// Which parameters a policy network has, and whether given ones are usable.
#include <cmath>

#include "base/fail.h"
#include "base/hash.h"
#include "policy/network.h"
#include "policy/network_weights.h"

namespace sol {
namespace {

// Far beyond anything useful, so that no product of sizes can overflow.
constexpr int max_size = 1 << 20;
constexpr int max_layers = 256;

void check_size(int size, int limit, const char* field) {
  if (size < 1 || size > limit)
    fail("policy network: {} = {} must be from 1 to {}", field, size, limit);
}

std::string describe(const std::vector<int64_t>& shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

}  // namespace

void check_policy_network_shape(const PolicyNetworkShape& shape) {
  check_size(shape.hidden_size, max_size, "hidden_size");
  check_size(shape.actions, max_size, "actions");
  check_size(shape.d_model, max_size, "d_model");
  check_size(shape.heads, shape.d_model, "heads");
  check_size(shape.layers, max_layers, "layers");
  check_size(shape.action_dim, max_size, "action_dim");
  check_size(shape.max_length, max_size, "max_length");
  if (shape.d_model % shape.heads != 0)
    fail("policy network: d_model = {} is not a multiple of heads = {}", shape.d_model,
         shape.heads);
  const double width = shape.mlp_ratio * shape.d_model;
  if (!(width >= 1.0 && width <= static_cast<double>(max_size)))
    fail("policy network: mlp_ratio = {} gives a width of {}, which must be from 1 to {}",
         shape.mlp_ratio, width, max_size);
}

std::map<std::string, std::vector<int64_t>> policy_parameter_shapes(
    const PolicyNetworkShape& shape) {
  check_policy_network_shape(shape);
  const int64_t d = shape.d_model, actions = shape.actions, mlp = mlp_width(shape);
  std::map<std::string, std::vector<int64_t>> shapes;
  const auto linear = [&](const std::string& name, int64_t out, int64_t in, bool bias = true) {
    shapes[name + ".weight"] = {out, in};
    if (bias) shapes[name + ".bias"] = {out};
  };
  const auto norm = [&](const std::string& name, int64_t width) {
    shapes[name + ".weight"] = {width};
    shapes[name + ".bias"] = {width};
  };
  linear("action_emb", actions + 1, shape.action_dim, false);
  linear("scalar_proj.0", scalar_width, scalar_count(shape));
  norm("scalar_proj.2", scalar_width);
  linear("obs_proj", d, observation_width(shape));
  linear("pos_emb", shape.max_length, d, false);
  for (int layer = 0; layer < shape.layers; ++layer) {
    const std::string block = fmt::format("blocks.{}.", layer);
    norm(block + "ln1", d);
    for (const char* projection : {"q_proj", "k_proj", "v_proj", "o_proj"})
      linear(block + "attn." + projection, d, d, false);
    norm(block + "ln2", d);
    linear(block + "ff.0", mlp, d);
    linear(block + "ff.2", d, mlp);
  }
  norm("ln_f", d);
  linear("budget_head.0", budget_width, 3);
  linear("budget_head.2", actions, budget_width);
  linear("pi", actions, d);
  linear("v", 1, d);
  return shapes;
}

void check_parameters(const PolicyNetworkShape& shape, const Parameters& parameters) {
  const auto expected = policy_parameter_shapes(shape);
  for (const auto& [name, parameter] : parameters)
    if (!expected.contains(name))
      fail("policy network: unknown parameter \"{}\" {}; another number of layers?", name,
           describe(parameter.shape));
  for (const auto& [name, dimensions] : expected) {
    const auto found = parameters.find(name);
    if (found == parameters.end())
      fail("policy network: parameter \"{}\" {} is missing", name, describe(dimensions));
    const Parameter& parameter = found->second;
    if (parameter.shape != dimensions)
      fail("policy network: parameter \"{}\" is {}, expected {}", name, describe(parameter.shape),
           describe(dimensions));
    int64_t count = 1;
    for (const int64_t n : dimensions) count *= n;
    if (static_cast<int64_t>(parameter.values.size()) != count)
      fail("policy network: parameter \"{}\" {} has {} values", name, describe(dimensions),
           parameter.values.size());
    for (size_t i = 0; i < parameter.values.size(); ++i)
      if (!std::isfinite(parameter.values[i]))
        fail(
            "policy network: parameter \"{}\" has {} at element {}; its training diverged or the "
            "file is damaged",
            name, parameter.values[i], i);
  }
}

std::string parameters_checksum(const Parameters& parameters) {
  Hash128 hash;
  for (const auto& [name, parameter] : parameters) {
    hash.add(fmt::format("{} {}\n", name, describe(parameter.shape)));
    hash.add(std::as_bytes(std::span(parameter.values)));
  }
  return hash.hexadecimal();
}

int64_t PolicyNetwork::parameter_count() const {
  int64_t count = 0;
  for (const auto& [name, parameter] : parameters_)
    count += static_cast<int64_t>(parameter.values.size());
  return count;
}

}  // namespace sol
