#include "model/fingerprint.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/fail.h"
#include "base/hash.h"
#include "model/llama_weights.h"

namespace sol {
namespace {

constexpr size_t sample_count = 16;
constexpr size_t sample_bytes = 4096;  // a page of memory: reading less costs the same

void add_tensor(Hash128& hash, const std::string& name, const TensorView& tensor) {
  hash.add(fmt::format("{} {} [{}]\n", name, to_string(tensor.type), fmt::join(tensor.shape, ",")));
  const std::span<const std::byte> bytes = tensor.bytes;
  if (bytes.size() <= sample_count * sample_bytes) {
    hash.add(bytes);
    return;
  }
  // Evenly spread, the first bytes and the last ones included.
  const size_t last_start = bytes.size() - sample_bytes;
  for (size_t i = 0; i < sample_count; ++i)
    hash.add(bytes.subspan(last_start / (sample_count - 1) * i +
                               last_start % (sample_count - 1) * i / (sample_count - 1),
                           sample_bytes));
}

}  // namespace

std::string arithmetic_fields(const LlamaConfig& config) {
  std::string text = fmt::format(
      "llama hidden={} intermediate={} layers={} heads={} kv_heads={} head_dim={} vocab={} eps={} "
      "theta={} tied={}",
      config.hidden_size, config.intermediate_size, config.num_layers, config.num_heads,
      config.num_kv_heads, config.head_dim, config.vocab_size, config.rms_norm_eps,
      config.rope_theta, config.tie_word_embeddings);
  if (config.rope_scaling)
    text += fmt::format(" llama3={},{},{},{}", config.rope_scaling->factor,
                        config.rope_scaling->low_freq_factor, config.rope_scaling->high_freq_factor,
                        config.rope_scaling->original_max_position_embeddings);
  return text;
}

std::string model_fingerprint(const LlamaConfig& config, const TensorStore& store) {
  const LlamaWeights weights = find_llama_weights(config, store);
  std::vector<std::pair<std::string, const TensorView*>> tensors{
      {"embed_tokens", weights.embedding}, {"norm", weights.final_norm}};
  if (!config.tie_word_embeddings) tensors.emplace_back("lm_head", weights.head);
  for (size_t i = 0; i < weights.layers.size(); ++i) {
    const LlamaLayerWeights& layer = weights.layers[i];
    const std::string prefix = fmt::format("layers.{}.", i);
    for (const auto& [name, tensor] :
         {std::pair{"input_norm", layer.input_norm}, std::pair{"q", layer.q},
          std::pair{"k", layer.k}, std::pair{"v", layer.v}, std::pair{"o", layer.o},
          std::pair{"post_norm", layer.post_norm}, std::pair{"gate", layer.gate},
          std::pair{"up", layer.up}, std::pair{"down", layer.down}})
      tensors.emplace_back(prefix + name, tensor);
  }
  std::ranges::sort(tensors);
  Hash128 hash;
  hash.add(arithmetic_fields(config) + "\n");
  for (const auto& [name, tensor] : tensors) add_tensor(hash, name, *tensor);
  return hash.hexadecimal();
}

}  // namespace sol
