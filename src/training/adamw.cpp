#include "training/adamw.h"

#include <algorithm>
#include <cmath>

#include "base/fail.h"
#include "training/linear_decay.h"

namespace sol {

AdamW::AdamW(const TorchNetwork& network, const AdamWOptions& options) : options_(options) {
  for (const auto& [name, parameter] : network.parameters()) {
    const size_t n = parameter.values.size();
    moments_[name] = {std::vector<float>(n, 0.0f), std::vector<float>(n, 0.0f)};
  }
}

double AdamW::learning_rate() const {
  if (!options_.final_learning_rate || options_.decay_steps <= 0) return options_.learning_rate;
  return linear_decay(options_.learning_rate, *options_.final_learning_rate, steps_,
                      options_.decay_steps);
}

double AdamW::step(TorchNetwork& network) {
  double squares = 0;
  for (const std::string& name : network.names()) {
    for (float g : network.gradient(name)) squares += static_cast<double>(g) * g;
  }
  const double norm = std::sqrt(squares);
  if (!std::isfinite(norm)) {
    fail(
        "training: the policy's gradient is not finite at update {}; lower the learning rate or "
        "look for "
        "infinite rewards in the log",
        steps_ + 1);
  }
  // PyTorch's clip_grad_norm_ adds 1e-6 to the norm.
  const float clip = static_cast<float>(std::min(1.0, options_.max_gradient_norm / (norm + 1e-6)));

  const double rate = learning_rate();
  ++steps_;
  const double correction1 = 1.0 - std::pow(options_.beta1, static_cast<double>(steps_));
  const double correction2 = 1.0 - std::pow(options_.beta2, static_cast<double>(steps_));
  const float decay = static_cast<float>(1.0 - rate * options_.weight_decay);
  const float step_size = static_cast<float>(rate / correction1);
  const float root = static_cast<float>(std::sqrt(correction2));
  const float beta1 = static_cast<float>(options_.beta1),
              beta2 = static_cast<float>(options_.beta2);
  const float rest1 = static_cast<float>(1.0 - options_.beta1);
  const float rest2 = static_cast<float>(1.0 - options_.beta2);
  const float epsilon = static_cast<float>(options_.epsilon);
  for (const std::string& name : network.names()) {
    const std::span<float> values = network.values(name), gradient = network.gradient(name);
    Moments& moments = moments_.at(name);
    for (size_t i = 0; i < values.size(); ++i) {
      const float g = gradient[i] * clip;
      float& m = moments.first[i];
      float& v = moments.second[i];
      m = m * beta1 + g * rest1;
      v = v * beta2 + g * g * rest2;
      values[i] = values[i] * decay - step_size * (m / (std::sqrt(v) / root + epsilon));
    }
  }
  network.zero_gradients();
  return norm;
}

void AdamW::restore(int64_t steps, std::map<std::string, Moments> moments) {
  if (steps < 0) fail("AdamW: a negative number of steps");
  for (const auto& [name, current] : moments_) {
    const auto found = moments.find(name);
    if (found == moments.end() || found->second.first.size() != current.first.size() ||
        found->second.second.size() != current.second.size()) {
      fail("AdamW: the moments of {} are missing or misshapen", name);
    }
  }
  steps_ = steps;
  moments_ = std::move(moments);
}

}  // namespace sol
