// Finds a Llama's weights in a tensor store under any of the names seen in the wild and checks
// every shape against the configuration.
#pragma once

#include <vector>

#include "model/safetensors.h"
#include "sol/config.h"

namespace sol {

struct LlamaLayerWeights {
  const TensorView* input_norm;  // [d]
  const TensorView* q;           // [heads * head_dim, d]
  const TensorView* k;           // [kv_heads * head_dim, d]
  const TensorView* v;           // [kv_heads * head_dim, d]
  const TensorView* o;           // [d, heads * head_dim]
  const TensorView* post_norm;   // [d], before the MLP
  const TensorView* gate;        // [intermediate, d]
  const TensorView* up;          // [intermediate, d]
  const TensorView* down;        // [d, intermediate]
};

struct LlamaWeights {
  const TensorView* embedding;   // [vocab, d]
  const TensorView* final_norm;  // [d]
  const TensorView* head;        // [vocab, d]; equal to `embedding` when tied
  std::vector<LlamaLayerWeights> layers;
};

// Accepts names with and without "model.", a tied head stored as embedding, as lm_head.weight or as
// both (which must then have equal bytes), and ignores rotary inv_freq buffers. Throws Error naming
// the tensor that is missing, misshapen, of a type other than F32/F16/BF16, or not part of a Llama.
LlamaWeights find_llama_weights(const LlamaConfig& config, const TensorStore& store);

}  // namespace sol
