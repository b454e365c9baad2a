#include "model/llama_weights.h"

#include <cstring>
#include <set>

#include "base/fail.h"

namespace sol {
namespace {

std::string files_of(const TensorStore& store) {
  if (store.files().size() == 1) return store.files()[0].string();
  return store.files().empty() ? "no file" : store.files()[0].parent_path().string();
}

// Looks tensors up by their canonical names without "model.", and remembers which ones were used.
class Finder {
 public:
  explicit Finder(const TensorStore& store) : store_(store), where_(files_of(store)) {}

  // nullptr when the store has it under neither name.
  const TensorView* find(const std::string& name, const std::vector<int64_t>& shape) {
    const bool prefixed = store_.has("model." + name), bare = store_.has(name);
    if (prefixed && bare)
      fail("{}: has both \"model.{}\" and \"{}\"; it must have one of them", where_, name, name);
    if (!prefixed && !bare) return nullptr;
    const TensorView& tensor = store_.get(prefixed ? "model." + name : name);
    used_.insert(tensor.name);
    if (tensor.type != DType::f32 && tensor.type != DType::f16 && tensor.type != DType::bf16)
      fail("tensor {}: weights must be F32, F16 or BF16", tensor.describe());
    if (tensor.shape != shape)
      fail("tensor {}: config.json asks for the shape [{}]", tensor.describe(),
           fmt::join(shape, ", "));
    return &tensor;
  }

  const TensorView* require(const std::string& name, const std::vector<int64_t>& shape) {
    if (const TensorView* tensor = find(name, shape)) return tensor;
    (void)store_.get("model." + name);  // names the nearest ones
    fail("{}: tensor \"model.{}\" is missing", where_, name);
  }

  void reject_unused(const LlamaConfig& config) const {
    for (const auto& [name, tensor] : store_.tensors()) {
      // Older files carry the rotary frequencies, which config.json determines.
      if (used_.count(name) || name.ends_with("rotary_emb.inv_freq")) continue;
      fail("tensor {} is not part of a Llama with the {} layers of config.json", tensor.describe(),
           config.num_layers);
    }
  }

  const std::string& where() const { return where_; }

 private:
  const TensorStore& store_;
  std::string where_;
  std::set<std::string> used_;
};

bool same_content(const TensorView& a, const TensorView& b) {
  return a.type == b.type && a.bytes.size() == b.bytes.size() &&
         (a.bytes.empty() || std::memcmp(a.bytes.data(), b.bytes.data(), a.bytes.size()) == 0);
}

void find_embedding_and_head(Finder& finder, const LlamaConfig& config, LlamaWeights& weights) {
  const std::vector<int64_t> shape{config.vocab_size, config.hidden_size};
  if (!config.tie_word_embeddings) {
    weights.embedding = finder.require("embed_tokens.weight", shape);
    weights.head = finder.find("lm_head.weight", shape);
    if (!weights.head)
      fail(
          "{}: tensor \"lm_head.weight\" is missing, and config.json does not say "
          "tie_word_embeddings",
          finder.where());
    return;
  }
  const TensorView* embedding = finder.find("embed_tokens.weight", shape);
  const TensorView* head = finder.find("lm_head.weight", shape);
  if (embedding && head && !same_content(*embedding, *head))
    fail("config.json says tie_word_embeddings, but {} and {} differ", embedding->describe(),
         head->describe());
  if (!embedding && !head)
    fail(
        "{}: tensor \"model.embed_tokens.weight\" is missing, and so is \"lm_head.weight\", which "
        "could stand for it",
        finder.where());
  weights.embedding = weights.head = embedding ? embedding : head;
}

}  // namespace

LlamaWeights find_llama_weights(const LlamaConfig& config, const TensorStore& store) {
  Finder finder(store);
  LlamaWeights weights{};
  find_embedding_and_head(finder, config, weights);
  const int64_t d = config.hidden_size;
  const int64_t wide = config.intermediate_size;
  const int64_t query = int64_t{config.num_heads} * config.head_dim;
  const int64_t key = int64_t{config.num_kv_heads} * config.head_dim;
  weights.final_norm = finder.require("norm.weight", {d});
  for (int i = 0; i < config.num_layers; ++i) {
    const std::string layer = fmt::format("layers.{}.", i);
    weights.layers.push_back({
        .input_norm = finder.require(layer + "input_layernorm.weight", {d}),
        .q = finder.require(layer + "self_attn.q_proj.weight", {query, d}),
        .k = finder.require(layer + "self_attn.k_proj.weight", {key, d}),
        .v = finder.require(layer + "self_attn.v_proj.weight", {key, d}),
        .o = finder.require(layer + "self_attn.o_proj.weight", {d, query}),
        .post_norm = finder.require(layer + "post_attention_layernorm.weight", {d}),
        .gate = finder.require(layer + "mlp.gate_proj.weight", {wide, d}),
        .up = finder.require(layer + "mlp.up_proj.weight", {wide, d}),
        .down = finder.require(layer + "mlp.down_proj.weight", {d, wide}),
    });
  }
  finder.reject_unused(config);
  return weights;
}

}  // namespace sol
