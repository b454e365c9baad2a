// What the tests of this folder share: small networks, golden tensors, errors' texts.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>  // does not include gtest itself

#include <cmath>
#include <functional>
#include <string>

#include "base/random.h"
#include "model/safetensors.h"
#include "policy/network.h"
#include "sol/error.h"
#include "support.h"

namespace sol::test {

// The message of the Error that `call` throws; fails the test when there is none.
inline std::string error_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  ADD_FAILURE() << "no Error was thrown";
  return "";
}

inline TensorStore golden(const std::string& file) {
  return TensorStore::open_file(test_data() / "golden" / "sol" / file);
}

// Tensors "PREFIX.name" as a network's parameters.
inline Parameters golden_parameters(const TensorStore& store, const std::string& prefix) {
  Parameters parameters;
  for (const auto& [name, tensor] : store.tensors())
    if (name.starts_with(prefix + "."))
      parameters[name.substr(prefix.size() + 1)] = {tensor.shape, tensor.to_floats()};
  return parameters;
}

inline Parameters random_parameters(const PolicyNetworkShape& shape, uint64_t seed) {
  Parameters parameters;
  uint32_t rollout = 0;
  for (const auto& [name, dimensions] : policy_parameter_shapes(shape)) {
    int64_t count = 1;
    for (const int64_t n : dimensions) count *= n;
    Random random({seed, RandomStream::test, 0, rollout++, 0});
    Parameter parameter{dimensions, std::vector<float>(static_cast<size_t>(count))};
    for (float& x : parameter.values) x = 0.3f * static_cast<float>(random.normal());
    parameters[name] = std::move(parameter);
  }
  return parameters;
}

inline std::vector<float> random_vector(size_t n, uint64_t seed) {
  Random random({seed, RandomStream::test, 1, 0, 0});
  std::vector<float> values(n);
  for (float& x : values) x = static_cast<float>(random.normal());
  return values;
}

// 2 x 2 x 2 levels, as the paper's 2L.
inline ActionSpace two_levels() {
  return ActionSpace::from_notation({0.1, 1.0}, {"s60", "s100"}, {"q5", "q16"});
}

}  // namespace sol::test
