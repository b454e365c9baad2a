// One thread's part of a training step: a window forward and back.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "cpu_attention.h"
#include "layout.h"

namespace sol::pretrain {

// What all workers read.
struct CpuModel {
  CpuModel(const LlamaConfig& config, std::vector<float> weights);
  LlamaConfig config;
  Layout layout;
  std::vector<float> weights;
  std::vector<bf16> rounded;  // the same, for products

  int64_t width() const { return int64_t{config.num_heads} * config.head_dim; }
  int64_t qkv_width() const { return width() + 2 * int64_t{config.num_kv_heads} * config.head_dim; }
};

class CpuWorker {
 public:
  CpuWorker(const CpuModel& model, int window);

  // Losses of the window's targets. ids [window + 1].
  void forward(std::span<const int32_t> ids, float* losses);
  // As forward; adds the gradients of scale · (sum of the losses) to `gradients`, flat.
  void forward_backward(std::span<const int32_t> ids, float scale, float* losses, float* gradients);

 private:
  struct Layer {                                 // what the way back needs, one row per position
    std::vector<float> x, middle;                // before the layer; before its MLP
    std::vector<float> input_scale, post_scale;  // of the norms
    std::vector<bf16> input, qkv, mixed, post, gate_up;
    std::vector<float> lse;
  };
  void run_layers(std::span<const int32_t> ids);
  void head(std::span<const int32_t> ids, float scale, float* losses, float* gradients);
  void mlp_backward(size_t layer, float* gradients);
  void attention_backward(size_t layer, float* gradients);
  const bf16* weight(int64_t offset) const { return model_.rounded.data() + offset; }

  const CpuModel& model_;
  const int64_t n_, d_, f_;
  Attention attention_;
  std::vector<float> cosines_, sines_;
  std::vector<Layer> layers_;
  std::vector<float> last_, last_scale_, logits_, gx_;
  std::vector<bf16> final_, probabilities_, act_, narrow_, gx16_, dqkv_, dmixed_, dgate_up_, dact_;
};

}  // namespace sol::pretrain
