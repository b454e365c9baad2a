#include "training/initialisation.h"

#include <cmath>
#include <string_view>

#include "base/random.h"

namespace sol {
namespace {

bool is_layer_norm(std::string_view name) {
  return name.find(".ln") != std::string_view::npos || name.starts_with("ln_f.") ||
         name.starts_with("scalar_proj.2.");
}

}  // namespace

Parameters initial_parameters(const PolicyNetworkShape& shape, uint64_t seed) {
  const auto shapes = policy_parameter_shapes(shape);
  Parameters out;
  uint64_t index = 0;
  for (const auto& [name, dimensions] : shapes) {
    Random random({.seed = seed, .stream = RandomStream::initialisation, .block = index++});
    int64_t count = 1;
    for (int64_t n : dimensions) count *= n;
    Parameter parameter{dimensions, std::vector<float>(static_cast<size_t>(count), 0.0f)};
    const bool bias = name.ends_with(".bias");
    if (is_layer_norm(name)) {
      if (!bias) std::fill(parameter.values.begin(), parameter.values.end(), 1.0f);
    } else if (name.ends_with("_emb.weight")) {
      for (float& v : parameter.values) v = static_cast<float>(random.normal());
    } else if (name != "pi.bias" && name != "v.bias") {
      // A bias has the fan-in of the weight beside it.
      const std::string weight = bias ? name.substr(0, name.size() - 4) + "weight" : name;
      const double bound = 1.0 / std::sqrt(static_cast<double>(shapes.at(weight)[1]));
      for (float& v : parameter.values)
        v = static_cast<float>((2.0 * random.uniform_double() - 1.0) * bound);
    }
    out.emplace(name, std::move(parameter));
  }
  return out;
}

}  // namespace sol
