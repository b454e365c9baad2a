// The frozen model's weights as the kernels want them.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/kernels.h"
#include "model/llama_weights.h"
#include "sol/frozen_model.h"

namespace sol {

struct CpuLayer {
  std::vector<float> input_norm, post_norm;
  kernels::WeightView q, k, v, o, down;  // [out][in], as in the file
  kernels::WeightView
      gate_up;  // [in][gate | up]: a channel that ρ drops is one row that is never read
};

class CpuWeights {
 public:
  // Keeps the tensor store mapped: a matrix whose type and layout suit is used in place. Throws
  // Error naming the tensor and the index of a weight that is NaN or infinite.
  CpuWeights(const LlamaConfig& config, TensorStore store, Precision precision);

  std::vector<CpuLayer> layers;
  std::vector<float> final_norm;
  kernels::WeightView embedding;  // [vocab][d]
  kernels::WeightView head;       // [vocab][d], the embedding itself when tied

  uint64_t parameters = 0;  // a tied head counted once
  uint64_t layer_bytes_without_gate_up = 0, gate_up_row_bytes = 0, head_bytes = 0;

 private:
  kernels::WeightView matrix(const TensorView& tensor);
  kernels::WeightView transposed_pair(const TensorView& gate, const TensorView& up);
  void* allocate(size_t bytes);

  TensorStore store_;
  kernels::ElementType type_;
  struct Free {
    void operator()(void* p) const;
  };
  std::vector<std::unique_ptr<void, Free>> storage_;
};

// What Precision::automatic means for these weights: bf16 when the file has bf16 weights and the
// processor multiplies it, else f32, so that no weight is ever rounded without being asked for.
Precision resolve_precision(Precision requested, const LlamaWeights& weights);

}  // namespace sol
