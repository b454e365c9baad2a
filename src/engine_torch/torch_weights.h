// The frozen model's weights as tensors on a device.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "model/llama_weights.h"
#include "sol/frozen_model.h"

namespace sol {

struct TorchLayer {
  at::Tensor input_norm, post_norm;       // float [d]
  at::Tensor q, k, v, o, gate, up, down;  // [out, in], as in the file
};

class TorchWeights {
 public:
  // Matrices have the precision's type, norms float32. On the CPU a matrix that has its type in the
  // file is used in place, from the mapped file. Throws Error naming a tensor with a weight that is
  // NaN or infinite.
  TorchWeights(const LlamaConfig& config, TensorStore store, Precision precision,
               const at::Device& device);

  std::vector<TorchLayer> layers;
  at::Tensor final_norm;
  at::Tensor embedding, head;  // [vocab, d], the same tensor when tied
  at::Tensor file_embedding;   // in host memory, as the file has it

  uint64_t parameters = 0;  // a tied head counted once
  // As one token alone reads them.
  uint64_t layer_fixed_bytes = 0, gate_up_row_bytes = 0, head_bytes = 0;

 private:
  at::Tensor load(const TensorView& tensor, at::ScalarType type, const at::Device& device);

  TensorStore store_;
};

// The tensor in the memory of its file.
at::Tensor view_of(const TensorView& tensor);

}  // namespace sol
