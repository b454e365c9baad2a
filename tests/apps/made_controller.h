// A controller with random weights, for tests of everything but its judgement.
#pragma once

#include <memory>
#include <string>

#include "base/random.h"
#include "policy/cost_table.h"
#include "policy/network.h"
#include "run_program.h"
#include "sol/controller.h"
#include "sol/frozen_model.h"

namespace sol::test {

inline std::filesystem::path default_model() {
  return source_dir() / "models/default";
}

inline std::shared_ptr<PolicyNetwork> made_network(int actions) {
  PolicyNetworkShape shape;
  shape.hidden_size = 256;
  shape.actions = actions;
  shape.d_model = 16;
  shape.heads = 2;
  shape.action_dim = 8;
  shape.max_length = 32;
  Parameters parameters;
  uint64_t index = 0;
  for (const auto& [name, dimensions] : policy_parameter_shapes(shape)) {
    Random random({.seed = 1, .block = index++});
    size_t count = 1;
    for (const int64_t n : dimensions) count *= static_cast<size_t>(n);
    Parameter& parameter = parameters[name];
    parameter.shape = dimensions;
    for (size_t i = 0; i < count; ++i)
      parameter.values.push_back(0.1f * static_cast<float>(random.normal()));
  }
  return std::make_shared<PolicyNetwork>(shape, std::move(parameters));
}

inline Controller made_controller(const std::string& fingerprint,
                                  const std::string& training_json = "{}") {
  ActionSpace space({0.1f, 1.0f}, {0.5f, 1.0f}, {5, 16});
  ControllerSettings settings;
  settings.horizon = 8;
  settings.ranges.kappa = {0.1, 1.0};
  settings.ranges.rho = {0.5, 1.0};
  settings.ranges.eta = {0.3125, 1.0};
  settings.frontier = {{0.5, {0.4f, 0.6f, 0.5f}, 90.0}, {0.8, {0.7f, 0.8f, 0.9f}, 80.0}};
  settings.model_fingerprint = fingerprint;
  settings.training_json = training_json;
  const int actions = space.size();
  return Controller(std::move(space), std::move(settings), made_network(actions));
}

// One for times: a dense step takes 10 ms, half the channels save 5 of them, a tenth of the context
// 1, and a refresh costs 0.5 a token.
inline Controller made_time_controller(const std::string& fingerprint) {
  ControllerSettings settings;
  settings.horizon = 8;
  settings.ranges.kappa = {0.1, 1.0};
  settings.ranges.rho = {0.5, 1.0};
  settings.costs = std::make_shared<const CostTable>(
      8, std::vector<float>{0.1f, 0.5f}, std::vector<CostTable::Length>{{64, 10, 4, {1, 0.5}}},
      std::vector<double>{5, 5});
  settings.time = {0.4, 1.0};
  settings.model_fingerprint = fingerprint;
  return Controller(ActionSpace({0.1f, 1.0f}, {0.5f, 1.0f}, {16}), std::move(settings),
                    made_network(4));
}

inline std::string default_fingerprint() {
  static const std::string fingerprint = load_model(default_model())->fingerprint();
  return fingerprint;
}

}  // namespace sol::test
