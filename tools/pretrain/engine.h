// What the training loop needs of a device: the loss, its gradients, an optimizer's step.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "sol/config.h"

namespace sol::pretrain {

// Windows of token ids, one after the other: window + 1 ids each, the last of which is a target
// only.
struct Batch {
  std::span<const int32_t> ids;
  int window = 0;
  int64_t windows() const { return static_cast<int64_t>(ids.size()) / (window + 1); }
  std::span<const int32_t> get(int64_t i) const {
    return ids.subspan(static_cast<size_t>(i) * (window + 1), static_cast<size_t>(window) + 1);
  }
};

// AdamW for all weights, or with `muon` Muon for the layers' matrices, at the same rate and decay.
struct OptimizerSettings {
  double learning_rate = 0;
  double beta1 = 0.9, beta2 = 0.95, epsilon = 1e-8;
  double weight_decay = 0.1;  // of matrices; norms do not decay
  double clip = 1.0;          // largest norm of the gradient
  bool muon = false;
};

// Flat, in the order of Layout. Muon's momentum is the first moment of its matrices.
struct EngineState {
  std::vector<float> weights, first, second;
  int64_t steps = 0;
};

class Engine {
 public:
  virtual ~Engine() = default;
  // Adds the gradients of the mean loss of `batch` (natural logarithm, over all its targets) to
  // those that are there; returns that mean.
  virtual double accumulate(const Batch& batch) = 0;
  // One step with the gradients, which are zero afterwards. Returns their norm before
  // clipping. Throws Error, with nothing changed, when it is not finite.
  virtual double step(const OptimizerSettings& settings) = 0;
  // -log p of every target: [windows, window].
  virtual std::vector<float> losses(const Batch& batch) = 0;
  virtual std::vector<float> gradients() const = 0;
  virtual EngineState state() const = 0;
  virtual void restore(const EngineState& state) = 0;
  virtual std::string describe() const = 0;
};

// BF16 products by oneDNN, F32 everything else; a window per thread. Needs AVX-512 with BF16
// products (AMX or AVX512_BF16): `cpu_engine_runs` says whether this machine has them.
bool cpu_engine_runs();
std::unique_ptr<Engine> make_cpu_engine(const LlamaConfig& config, std::vector<float> weights);

// LibTorch: "cpu" or "cuda", F32 throughout or with BF16 products. At most `micro_batch` windows
// are held at a time. Throws Error when there is no such device.
std::unique_ptr<Engine> make_torch_engine(const LlamaConfig& config, std::vector<float> weights,
                                          const std::string& device, bool bf16, int micro_batch);

}  // namespace sol::pretrain
