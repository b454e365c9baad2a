#include "benchmark/random_model.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "base/bfloat16.h"
#include "base/fail.h"
#include "base/file_io.h"
#include "base/json.h"
#include "base/random.h"
#include "base/staged_directory.h"
#include "base/system_memory.h"
#include "base/threads.h"
#include "engine/cpu_weights.h"
#include "engine/weight_memory.h"
#include "kernels/compressed.h"
#include "sol/tokenizer.h"

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

// A tensor of a model: a matrix, or where `in` is 0 a vector of ones.
struct Weight {
  std::string name;
  int64_t out, in;
  bool rearranged = false;  // whatever its format, the engine makes a copy of its own

  int64_t count() const { return in == 0 ? out : out * in; }
};

std::vector<Weight> weights_of(const LlamaConfig& config) {
  const int64_t d = config.hidden_size, mlp = config.intermediate_size;
  const int64_t q = static_cast<int64_t>(config.num_heads) * config.head_dim;
  const int64_t kv = static_cast<int64_t>(config.num_kv_heads) * config.head_dim;
  std::vector<Weight> weights{{"model.embed_tokens.weight", config.vocab_size, d}};
  if (!config.tie_word_embeddings) weights.push_back({"lm_head.weight", config.vocab_size, d});
  weights.push_back({"model.norm.weight", d, 0});
  for (int layer = 0; layer < config.num_layers; ++layer) {
    const std::string prefix = fmt::format("model.layers.{}.", layer);
    weights.push_back({prefix + "input_layernorm.weight", d, 0});
    weights.push_back({prefix + "post_attention_layernorm.weight", d, 0});
    weights.push_back({prefix + "self_attn.q_proj.weight", q, d});
    weights.push_back({prefix + "self_attn.k_proj.weight", kv, d});
    weights.push_back({prefix + "self_attn.v_proj.weight", kv, d});
    weights.push_back({prefix + "self_attn.o_proj.weight", d, q});
    weights.push_back({prefix + "mlp.gate_proj.weight", mlp, d, true});
    weights.push_back({prefix + "mlp.up_proj.weight", mlp, d, true});
    weights.push_back({prefix + "mlp.down_proj.weight", d, mlp});
  }
  return weights;
}

// Fills tensors, each from another place of the same numbers.
class Filler {
 public:
  explicit Filler(DType stored) : stored_(stored), numbers_(normal_numbers()) {}

  void fill(const Weight& weight, size_t place, std::byte* memory) const {
    if (weight.in == 0) {
      write(memory, weight.out, 0, [](float) { return 1.0f; });
      return;
    }
    const float scale = 1.0f / std::sqrt(static_cast<float>(weight.in));
    const size_t offset = place * 7919;
    parallel_for(weight.out, [&](int64_t row) {
      write(memory + row * weight.in * static_cast<int64_t>(size_of(stored_)), weight.in,
            offset + static_cast<size_t>(row * weight.in), [&](float x) { return x * scale; });
    });
  }

  DType stored() const { return stored_; }

 private:
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
};

void require_storable(DType stored) {
  if (stored != DType::bf16 && stored != DType::f32)
    fail("random weights can be BF16 or F32, not {}", to_string(stored));
}

std::vector<int64_t> shape_of(const Weight& weight) {
  return weight.in == 0 ? std::vector{weight.out} : std::vector{weight.out, weight.in};
}

// Memory of tensors. Those that the engine copies anyway share theirs with others of their shape.
struct TensorMemory {
  // In huge pages: under a hypervisor that keeps shadow page tables, weights in ordinary pages are
  // read at a twentieth of the speed, which those of a mapped file are not.
  WeightMemory all;
  std::map<std::pair<int64_t, int64_t>, std::byte*> shared;
};

// `shares` tells the weights that may have the memory of others of their shape.
template <typename Shares>
TensorStore make_tensors(const LlamaConfig& config, DType stored, const Shares& shares) {
  require_storable(stored);
  const Filler filler(stored);
  const auto memory = std::make_shared<TensorMemory>();
  std::vector<TensorView> tensors;
  for (const Weight& weight : weights_of(config)) {
    const uint64_t bytes = static_cast<uint64_t>(weight.count()) * size_of(stored);
    std::byte* place = nullptr;
    if (weight.in > 0 && shares(weight)) {
      std::byte*& shared = memory->shared[{weight.out, weight.in}];
      if (!shared) filler.fill(weight, tensors.size(), shared = memory->all.allocate(bytes));
      place = shared;
    } else {
      filler.fill(weight, tensors.size(), place = memory->all.allocate(bytes));
    }
    tensors.push_back({weight.name, stored, shape_of(weight), {place, bytes}});
  }
  return TensorStore::in_memory(std::move(tensors), memory);
}

// Random weights are not backed by a file, so the system could only end the process. What is
// counted is the least: every weight once, as the engine reads it.
void require_memory(const LlamaConfig& config, kernels::WeightType type) {
  uint64_t bytes = 0;
  for (const Weight& weight : weights_of(config))
    if (weight.in > 0)
      bytes +=
          static_cast<uint64_t>(weight.out * kernels::row_bytes(type, static_cast<int>(weight.in)));
  const uint64_t available = available_memory();
  if (bytes <= available) return;
  fail(
      "the weights need {:.1f} GB as {}, {:.1f} are free; choose a smaller shape or weights of "
      "fewer bits",
      static_cast<double>(bytes) / 1e9, to_string(type), static_cast<double>(available) / 1e9);
}

Json config_json(const LlamaConfig& config, DType stored) {
  Json json{{"architectures", {"LlamaForCausalLM"}},
            {"model_type", "llama"},
            {"hidden_act", "silu"},
            {"hidden_size", config.hidden_size},
            {"intermediate_size", config.intermediate_size},
            {"num_hidden_layers", config.num_layers},
            {"num_attention_heads", config.num_heads},
            {"num_key_value_heads", config.num_kv_heads},
            {"head_dim", config.head_dim},
            {"vocab_size", config.vocab_size},
            {"max_position_embeddings", config.max_position_embeddings},
            {"rms_norm_eps", config.rms_norm_eps},
            {"rope_theta", config.rope_theta},
            {"tie_word_embeddings", config.tie_word_embeddings},
            {"torch_dtype", stored == DType::f32 ? "float32" : "bfloat16"}};
  if (const auto& scaling = config.rope_scaling)
    json["rope_scaling"] = {
        {"rope_type", "llama3"},
        {"factor", scaling->factor},
        {"low_freq_factor", scaling->low_freq_factor},
        {"high_freq_factor", scaling->high_freq_factor},
        {"original_max_position_embeddings", scaling->original_max_position_embeddings}};
  return json;
}

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
  require_storable(stored);
  const Precision precision = resolve_precision(options.precision, stored);
  require_memory(config, weight_type(precision, options.weights));
  const bool in_place = options.weights == WeightFormat::automatic;
  return std::make_unique<CpuModel>(
      config,
      make_tensors(config, stored,
                   [&](const Weight& weight) { return weight.rearranged || !in_place; }),
      options);
}

TensorStore make_random_weights(const LlamaConfig& config, DType stored) {
  return make_tensors(config, stored, [](const Weight&) { return false; });
}

void write_random_model(const LlamaConfig& config, DType stored,
                        const std::filesystem::path& tokenizer, const std::filesystem::path& out,
                        const std::stop_token& stop) {
  require_storable(stored);
  const std::shared_ptr<const Tokenizer> known = Tokenizer::load(tokenizer);
  if (known->vocab_size() > config.vocab_size)
    fail("{}: has {} tokens, but the shape's vocabulary is {}", tokenizer.string(),
         known->vocab_size(), config.vocab_size);
  StagedDirectory directory(out);
  const Filler filler(stored);
  std::vector<TensorToMake> tensors;
  for (const Weight& weight : weights_of(config)) {
    const size_t place = tensors.size();
    tensors.push_back({weight.name, stored, shape_of(weight),
                       [&filler, &stop, weight, place](std::span<std::byte> bytes) {
                         if (stop.stop_requested()) throw Cancelled();
                         filler.fill(weight, place, bytes.data());
                       }});
  }
  make_safetensors(directory.path() / "model.safetensors", tensors);
  write_file_atomically(directory.path() / "config.json",
                        to_text(config_json(config, stored), 2) + "\n");
  for (const char* name : {"tokenizer.json", "tokenizer_config.json", "chat_template.jinja"})
    if (path_exists(tokenizer / name))
      write_file_atomically(directory.path() / name, read_file(tokenizer / name));
  directory.place();
}

}  // namespace sol
