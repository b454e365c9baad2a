#include "benchmark/random_model.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "base/bfloat16.h"
#include "base/fail.h"
#include "base/random.h"
#include "base/threads.h"

namespace sol {
namespace {

LlamaConfig llama(int width, int mlp, int layers, int heads, int kv_heads, int vocabulary,
                  bool tied) {
  LlamaConfig c;
  c.hidden_size = width;
  c.intermediate_size = mlp;
  c.num_layers = layers;
  c.num_heads = heads;
  c.num_kv_heads = kv_heads;
  c.head_dim = width / heads;
  c.vocab_size = vocabulary;
  c.max_position_embeddings = 131072;
  c.rope_theta = 500000.0;
  c.tie_word_embeddings = tied;
  c.model_type = "llama";
  return c;
}

// Normal numbers with variance 1, enough of them that no row of a matrix looks like another.
std::vector<float> normal_numbers() {
  std::vector<float> x((1 << 18) + 7);
  Random random({.seed = 1});
  for (float& v : x) v = static_cast<float>(random.normal());
  return x;
}

// Hands out memory for tensors and keeps it.
class Weights {
 public:
  Weights(DType stored, std::vector<float> numbers)
      : stored_(stored), numbers_(std::move(numbers)) {}

  std::vector<TensorView> tensors;

  void vector(const std::string& name, int64_t n) {
    std::byte* memory = allocate(n);
    write(memory, n, 0, [](float) { return 1.0f; });
    add(name, {n}, memory);
  }
  void matrix(const std::string& name, int64_t out, int64_t in) {
    std::byte* memory = allocate(out * in);
    fill(memory, out, in);
    add(name, {out, in}, memory);
  }
  // Matrices of one shape given by this function have the same memory: for those that the engine
  // copies.
  void shared_matrix(const std::string& name, int64_t out, int64_t in) {
    std::byte*& memory = shared_[{out, in}];
    if (!memory) fill(memory = allocate(out * in), out, in);
    add(name, {out, in}, memory);
  }

 private:
  std::byte* allocate(int64_t count) {
    auto memory =
        std::make_shared_for_overwrite<std::byte[]>(static_cast<size_t>(count) * size_of(stored_));
    memory_.push_back(memory);
    return memory.get();
  }

  void add(const std::string& name, std::vector<int64_t> shape, const std::byte* memory) {
    size_t bytes = size_of(stored_);
    for (const int64_t n : shape) bytes *= static_cast<size_t>(n);
    tensors.push_back({name, stored_, std::move(shape), {memory, bytes}});
  }

  void fill(std::byte* memory, int64_t out, int64_t in) {
    const float scale = 1.0f / std::sqrt(static_cast<float>(in));
    const size_t offset = tensors.size() * 7919;
    parallel_for(out, [&](int64_t row) {
      write(memory + row * in * static_cast<int64_t>(size_of(stored_)), in,
            offset + static_cast<size_t>(row * in), [&](float x) { return x * scale; });
    });
  }

  template <typename Value>
  void write(std::byte* memory, int64_t count, size_t offset, const Value& value) const {
    size_t at = offset % numbers_.size();
    for (int64_t i = 0; i < count; ++i) {
      const float x = value(numbers_[at]);
      if (++at == numbers_.size()) at = 0;
      if (stored_ == DType::f32) {
        std::memcpy(memory + i * 4, &x, 4);
      } else {
        const bf16 rounded = to_bf16(x);
        std::memcpy(memory + i * 2, &rounded, 2);
      }
    }
  }

  DType stored_;
  std::vector<float> numbers_;
  std::vector<std::shared_ptr<std::byte[]>> memory_;
  std::map<std::pair<int64_t, int64_t>, std::byte*> shared_;
};

}  // namespace

std::span<const NamedShape> named_shapes() {
  static const std::vector<NamedShape> shapes = [] {
    std::vector<NamedShape> s{
        {"llama-3.2-1b", "1.24 B parameters", llama(2048, 8192, 16, 32, 8, 128256, true)},
        {"llama-3.2-3b", "3.21 B parameters", llama(3072, 8192, 28, 24, 8, 128256, true)},
        {"llama-3.1-8b", "8.03 B parameters", llama(4096, 14336, 32, 32, 8, 128256, false)},
        {"small-27m", "27.3 M parameters, for training batches",
         llama(512, 1536, 8, 8, 4, 4096, true)}};
    s[0].config.rope_scaling = s[1].config.rope_scaling = Llama3RopeScaling{.factor = 32.0};
    s[2].config.rope_scaling = Llama3RopeScaling{.factor = 8.0};
    return s;
  }();
  return shapes;
}

const LlamaConfig& find_shape(std::string_view name) {
  std::string names;
  for (const NamedShape& shape : named_shapes()) {
    if (shape.name == name) return shape.config;
    names += (names.empty() ? "" : ", ") + std::string(shape.name);
  }
  fail("unknown shape \"{}\"; known are {}", name, names);
}

std::unique_ptr<CpuModel> make_random_model(const LlamaConfig& config, DType stored,
                                            const ModelOptions& options) {
  if (stored != DType::bf16 && stored != DType::f32) {
    fail("random weights can be BF16 or F32, not {}", to_string(stored));
  }
  const int64_t d = config.hidden_size, mlp = config.intermediate_size;
  const int64_t q = static_cast<int64_t>(config.num_heads) * config.head_dim;
  const int64_t kv = static_cast<int64_t>(config.num_kv_heads) * config.head_dim;
  const auto weights = std::make_shared<Weights>(stored, normal_numbers());
  const bool in_place = options.weights == WeightFormat::automatic;
  const auto matrix = [&](const std::string& name, int64_t out, int64_t in) {
    in_place ? weights->matrix(name, out, in) : weights->shared_matrix(name, out, in);
  };
  matrix("model.embed_tokens.weight", config.vocab_size, d);
  if (!config.tie_word_embeddings) matrix("lm_head.weight", config.vocab_size, d);
  weights->vector("model.norm.weight", d);
  for (int layer = 0; layer < config.num_layers; ++layer) {
    const std::string prefix = fmt::format("model.layers.{}.", layer);
    weights->vector(prefix + "input_layernorm.weight", d);
    weights->vector(prefix + "post_attention_layernorm.weight", d);
    matrix(prefix + "self_attn.q_proj.weight", q, d);
    matrix(prefix + "self_attn.k_proj.weight", kv, d);
    matrix(prefix + "self_attn.v_proj.weight", kv, d);
    matrix(prefix + "self_attn.o_proj.weight", d, q);
    weights->shared_matrix(prefix + "mlp.gate_proj.weight", mlp, d);
    weights->shared_matrix(prefix + "mlp.up_proj.weight", mlp, d);
    matrix(prefix + "mlp.down_proj.weight", d, mlp);
  }
  std::vector<TensorView> tensors = std::move(weights->tensors);
  return std::make_unique<CpuModel>(config, TensorStore::in_memory(std::move(tensors), weights),
                                    options);
}

}  // namespace sol
