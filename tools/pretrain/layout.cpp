#include "layout.h"

#include <cmath>
#include <cstring>

#include "base/bfloat16.h"
#include "base/fail.h"
#include "base/random.h"
#include "model/llama_weights.h"
#include "model/safetensors.h"

namespace sol::pretrain {

Layout::Layout(const LlamaConfig& c) {
  const int64_t d = c.hidden_size, q = int64_t{c.num_heads} * c.head_dim,
                kv = int64_t{c.num_kv_heads} * c.head_dim, mlp = c.intermediate_size;
  embedding = add("model.embed_tokens.weight", c.vocab_size, d);
  head = c.tie_word_embeddings ? embedding : add("lm_head.weight", c.vocab_size, d);
  layers_begin_ = size_;
  layers.resize(static_cast<size_t>(c.num_layers));
  const auto prefix = [](size_t i) { return fmt::format("model.layers.{}.", i); };
  for (size_t i = 0; i < layers.size(); ++i) {
    Layer& layer = layers[i];
    layer.qkv = add(prefix(i) + "self_attn.q_proj.weight", q, d);
    add(prefix(i) + "self_attn.k_proj.weight", kv, d);
    add(prefix(i) + "self_attn.v_proj.weight", kv, d);
    layer.o = add(prefix(i) + "self_attn.o_proj.weight", d, q);
    layer.gate_up = add(prefix(i) + "mlp.gate_proj.weight", mlp, d);
    add(prefix(i) + "mlp.up_proj.weight", mlp, d);
    layer.down = add(prefix(i) + "mlp.down_proj.weight", d, mlp);
  }
  matrices_end_ = size_;
  for (size_t i = 0; i < layers.size(); ++i) {
    layers[i].input_norm = add(prefix(i) + "input_layernorm.weight", d, 0);
    layers[i].post_norm = add(prefix(i) + "post_attention_layernorm.weight", d, 0);
  }
  final_norm = add("model.norm.weight", d, 0);
}

std::vector<NamedSlice> Layout::layer_matrices() const {
  std::vector<NamedSlice> out;
  for (const NamedSlice& s : slices_)
    if (s.offset >= layers_begin_ && s.offset < matrices_end_) out.push_back(s);
  return out;
}

int64_t Layout::add(const std::string& name, int64_t rows, int64_t columns) {
  slices_.push_back({name, size_, rows, columns});
  const int64_t offset = size_;
  size_ += slices_.back().count();
  return offset;
}

std::vector<float> initial_weights(const LlamaConfig& config, const Layout& layout, uint64_t seed) {
  std::vector<float> out(static_cast<size_t>(layout.size()), 1.0f);
  const double residual = 1 / std::sqrt(2.0 * config.num_layers);
  uint64_t index = 0;
  for (const NamedSlice& s : layout.slices()) {
    if (s.columns == 0) continue;
    const bool writes_residual =
        s.name.find("o_proj") != std::string::npos || s.name.find("down_proj") != std::string::npos;
    const double deviation = 0.02 * (writes_residual ? residual : 1);
    Random random({.seed = seed, .stream = RandomStream::initialisation, .block = index++});
    for (int64_t i = 0; i < s.count(); ++i)
      out[static_cast<size_t>(s.offset + i)] = static_cast<float>(deviation * random.normal());
  }
  return out;
}

std::vector<float> load_weights(const std::filesystem::path& dir, const LlamaConfig& config,
                                const Layout& layout) {
  const TensorStore store = TensorStore::open_directory(dir);
  const LlamaWeights found = find_llama_weights(config, store);
  std::vector<float> out(static_cast<size_t>(layout.size()));
  const auto put = [&](int64_t offset, const TensorView* tensor) {
    if (const auto bad = tensor->first_not_finite())
      fail("{}: element {} is not finite", tensor->describe(), *bad);
    const std::vector<float> values = tensor->to_floats();
    std::memcpy(out.data() + offset, values.data(), values.size() * sizeof(float));
    return offset + static_cast<int64_t>(values.size());
  };
  put(layout.embedding, found.embedding);
  if (layout.head != layout.embedding) put(layout.head, found.head);
  put(layout.final_norm, found.final_norm);
  for (size_t i = 0; i < layout.layers.size(); ++i) {
    const LlamaLayerWeights& from = found.layers[i];
    const Layout::Layer& to = layout.layers[i];
    put(put(put(to.qkv, from.q), from.k), from.v);
    put(to.o, from.o);
    put(put(to.gate_up, from.gate), from.up);
    put(to.down, from.down);
    put(to.input_norm, from.input_norm);
    put(to.post_norm, from.post_norm);
  }
  return out;
}

void save_weights(const std::filesystem::path& dir, const Layout& layout,
                  const std::vector<float>& weights, bool f32) {
  std::vector<TensorToMake> tensors;
  for (const NamedSlice& s : layout.slices()) {
    const float* from = weights.data() + s.offset;
    const std::vector<int64_t> shape =
        s.columns > 0 ? std::vector<int64_t>{s.rows, s.columns} : std::vector<int64_t>{s.rows};
    tensors.push_back({s.name, f32 ? DType::f32 : DType::bf16, shape,
                       [from, f32, count = s.count()](std::span<std::byte> to) {
                         if (f32) {
                           std::memcpy(to.data(), from, to.size());
                           return;
                         }
                         for (int64_t i = 0; i < count; ++i) {
                           const bf16 value = to_bf16(from[i]);
                           std::memcpy(to.data() + 2 * i, &value, 2);
                         }
                       }});
  }
  make_safetensors(dir / "model.safetensors", tensors, {{"format", "pt"}});
}

double training_flops(const LlamaConfig& c, int window) {
  const double d = c.hidden_size, q = double(c.num_heads) * c.head_dim,
               kv = double(c.num_kv_heads) * c.head_dim;
  const double layer = d * (q + 2 * kv) + q * d + 3 * d * c.intermediate_size;
  const double attention = 2 * q * (window + 1) / 2;  // scores and mixing
  return 6 * (c.num_layers * (layer + attention) + d * c.vocab_size);
}

}  // namespace sol::pretrain
