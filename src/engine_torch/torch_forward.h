// One forward pass over a batch of rows: the whole model as a list of named steps.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <vector>

#include "engine_torch/torch_actions.h"
#include "engine_torch/torch_attention.h"
#include "engine_torch/torch_weights.h"

namespace sol {

struct TorchWantedRow {
  int row;
  OutputRequest out;
};

// All sequences of a pass keep their cache in one pool.
struct TorchPass {
  bool decode = false;  // one row per segment, each under its action; else dense chunks
  std::vector<TorchSegment> segments;
  std::vector<int64_t> tokens;  // per row
  std::vector<TorchWantedRow> wanted;
  std::vector<StepCost*> costs;  // per segment of a decode pass; null where nobody asks

  int rows() const { return static_cast<int>(tokens.size()); }
};

class TorchForward {
 public:
  TorchForward(const LlamaConfig& config, const TorchWeights& weights, const at::Device& device);

  // Computes the rows, writes their keys and values, the outputs that are wanted and the costs. The
  // sequences have grown by the rows already.
  void run(TorchPass& pass);

 private:
  // What a pass needs in every layer.
  struct Work {
    CachePool* pool;
    WritePlan write;
    at::Tensor cos, sin;  // [rows, 1, head_dim / 2]
    RowActions actions;
    std::optional<DenseAttention> dense;
    std::optional<DecodeAttention> decoded;
  };
  Work prepare(const TorchPass& pass);
  at::Tensor run_layer(int layer, Work& work, at::Tensor x) const;
  at::Tensor normalise(const at::Tensor& x, const at::Tensor& weight) const;
  at::Tensor rotate(const at::Tensor& x, int heads, const Work& work) const;
  at::Tensor attend(int layer, Work& work, const at::Tensor& q) const;
  at::Tensor run_mlp(const TorchLayer& layer, const Work& work, const at::Tensor& x) const;
  void write_outputs(const TorchPass& pass, const at::Tensor& x) const;
  at::Tensor logits(const at::Tensor& hidden) const;
  void write_costs(const TorchPass& pass, const DecodeAttention& attention) const;
  void grow_rotary_table(int positions);

  const LlamaConfig& config_;
  const TorchWeights& weights_;
  at::Device device_;
  std::vector<float> inverse_frequencies_;
  at::Tensor cos_, sin_;  // [positions, head_dim / 2]
};

}  // namespace sol
