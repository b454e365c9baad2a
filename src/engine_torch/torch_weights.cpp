#include "engine_torch/torch_weights.h"

#include <ATen/Functions.h>

#include "base/fail.h"
#include "engine/pack_weights.h"

namespace sol {
namespace {

at::ScalarType type_of(const TensorView& tensor) {
  switch (tensor.type) {
    case DType::f32:
      return at::kFloat;
    case DType::f16:
      return at::kHalf;
    case DType::bf16:
      return at::kBFloat16;
    default:
      fail("tensor {}: weights must be F32, F16 or BF16", tensor.describe());
  }
}

uint64_t bytes_of(const at::Tensor& tensor) {
  return static_cast<uint64_t>(tensor.numel()) * tensor.element_size();
}

}  // namespace

at::Tensor view_of(const TensorView& tensor) {
  return at::from_blob(const_cast<std::byte*>(tensor.bytes.data()), tensor.shape,
                       at::TensorOptions().dtype(type_of(tensor)));
}

at::Tensor TorchWeights::load(const TensorView& tensor, at::ScalarType type,
                              const at::Device& device) {
  require_finite(tensor);
  parameters += static_cast<uint64_t>(tensor.count());
  return view_of(tensor).to(device, type);
}

TorchWeights::TorchWeights(const LlamaConfig& config, TensorStore store, Precision precision,
                           const at::Device& device)
    : store_(std::move(store)) {
  const LlamaWeights found = find_llama_weights(config, store_);
  const at::ScalarType type = precision == Precision::bf16 ? at::kBFloat16 : at::kFloat;
  embedding = load(*found.embedding, type, device);
  head = found.head == found.embedding ? embedding : load(*found.head, type, device);
  file_embedding = view_of(*found.embedding);
  final_norm = load(*found.final_norm, at::kFloat, device);
  for (const LlamaLayerWeights& layer : found.layers) {
    layers.push_back({.input_norm = load(*layer.input_norm, at::kFloat, device),
                      .post_norm = load(*layer.post_norm, at::kFloat, device),
                      .q = load(*layer.q, type, device),
                      .k = load(*layer.k, type, device),
                      .v = load(*layer.v, type, device),
                      .o = load(*layer.o, type, device),
                      .gate = load(*layer.gate, type, device),
                      .up = load(*layer.up, type, device),
                      .down = load(*layer.down, type, device)});
  }
  const TorchLayer& first = layers.front();
  for (const at::Tensor& matrix : {first.q, first.k, first.v, first.o, first.down})
    layer_fixed_bytes += bytes_of(matrix);
  gate_up_row_bytes =
      (bytes_of(first.gate) + bytes_of(first.up)) / static_cast<uint64_t>(config.hidden_size);
  head_bytes = bytes_of(head);
}

}  // namespace sol
