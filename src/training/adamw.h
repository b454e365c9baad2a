// AdamW with clipping of the gradient's norm, as PyTorch computes them.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "training/torch_network.h"

namespace sol {

struct AdamWOptions {
  double learning_rate = 1e-4;
  // Linear decay from learning_rate to this over `decay_steps`, constant after them; none: constant
  // throughout, as in the paper.
  std::optional<double> final_learning_rate = {};
  int64_t decay_steps = 0;
  double beta1 = 0.9, beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0.01;
  double max_gradient_norm = 2.0;
};

class AdamW {
 public:
  AdamW(const TorchNetwork& network, const AdamWOptions& options);

  // Clips the accumulated gradients to the norm, makes one step and zeroes them. Returns the norm
  // before clipping. Throws Error, with nothing changed, when it is not finite.
  double step(TorchNetwork& network);

  int64_t steps() const { return steps_; }
  double learning_rate() const;  // of the next step

  // Moments by parameter name, for checkpoints.
  struct Moments {
    std::vector<float> first, second;
  };
  const std::map<std::string, Moments>& moments() const { return moments_; }
  void restore(int64_t steps, std::map<std::string, Moments> moments);

 private:
  AdamWOptions options_;
  int64_t steps_ = 0;
  std::map<std::string, Moments> moments_;
};

}  // namespace sol
