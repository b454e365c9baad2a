#include "engine/convert.h"

#include <array>
#include <cstring>
#include <vector>

#include "base/fail.h"
#include "base/file_io.h"
#include "base/staged_directory.h"
#include "engine/converted_weights.h"
#include "engine/pack_weights.h"
#include "model/fingerprint.h"

namespace sol {

using kernels::Layout;
using kernels::WeightType;

namespace {

namespace fs = std::filesystem;

// What a directory may have beside its weights that a loader of it looks at.
constexpr const char* kCompanions[] = {"config.json",
                                       "generation_config.json",
                                       "tokenizer.json",
                                       "tokenizer_config.json",
                                       "special_tokens_map.json",
                                       "added_tokens.json",
                                       "vocab.json",
                                       "merges.txt",
                                       "tokenizer.model",
                                       "chat_template.jinja",
                                       "chat_template.json"};

// The list of tensors to make, in the order of the file's names.
class Plan {
 public:
  explicit Plan(WeightType type) : type_(type) {}

  void vector(const std::string& name, const TensorView* tensor) {
    add(name, DType::f32, tensor->shape, [tensor](std::span<std::byte> out) {
      require_finite(*tensor);
      const std::vector<float> values = tensor->to_floats();
      std::memcpy(out.data(), values.data(), out.size());
    });
  }

  void matrix(const std::string& name, const TensorView* tensor, WeightType type) {
    add(name, stored(type), {tensor->shape[0], width(type, tensor->shape[1])},
        [tensor, type](std::span<std::byte> out) {
          require_finite(*tensor);
          pack_rows(*tensor, type, out.data());
        });
  }
  void matrix(const std::string& name, const TensorView* tensor) { matrix(name, tensor, type_); }

  void gate_up(const std::string& name, const TensorView* gate, const TensorView* up) {
    add(name, stored(type_), {gate->shape[1], width(type_, 2 * gate->shape[0])},
        [gate, up, type = type_](std::span<std::byte> out) {
          require_finite(*gate);
          require_finite(*up);
          pack_channels(std::array{gate, up}, type, out.data());
        });
  }

  std::vector<TensorToMake> tensors;

 private:
  static DType stored(WeightType type) {
    return kernels::is_compressed(type) ? DType::u8 : DType::bf16;
  }
  static int64_t width(WeightType type, int64_t columns) {
    return kernels::is_compressed(type) ? kernels::row_bytes(type, static_cast<int>(columns))
                                        : columns;
  }
  void add(const std::string& name, DType type, std::vector<int64_t> shape,
           std::function<void(std::span<std::byte>)> make) {
    tensors.push_back({name, type, std::move(shape), std::move(make)});
  }
  WeightType type_;
};

Plan make_plan(const LlamaConfig& config, const LlamaWeights& weights, WeightType type) {
  Plan plan(type);
  plan.matrix("model.embed_tokens.weight", weights.embedding, embedding_type(type));
  if (!config.tie_word_embeddings)
    plan.matrix("lm_head.weight", weights.head, embedding_type(type));
  plan.vector("model.norm.weight", weights.final_norm);
  for (size_t i = 0; i < weights.layers.size(); ++i) {
    const LlamaLayerWeights& layer = weights.layers[i];
    const std::string prefix = fmt::format("model.layers.{}.", i);
    plan.vector(prefix + "input_layernorm.weight", layer.input_norm);
    plan.matrix(prefix + "self_attn.q_proj.weight", layer.q);
    plan.matrix(prefix + "self_attn.k_proj.weight", layer.k);
    plan.matrix(prefix + "self_attn.v_proj.weight", layer.v);
    plan.matrix(prefix + "self_attn.o_proj.weight", layer.o);
    plan.vector(prefix + "post_attention_layernorm.weight", layer.post_norm);
    plan.gate_up(prefix + "mlp.gate_up_proj.weight", layer.gate, layer.up);
    plan.matrix(prefix + "mlp.down_proj.weight", layer.down);
  }
  return plan;
}

}  // namespace

void convert_model(const fs::path& from, const fs::path& to, WeightType type,
                   const std::function<void(int64_t, int64_t)>& progress, std::stop_token stop) {
  if (type == WeightType::f32) fail("a model is converted to bf16, int8 or int4, not to f32");
  const LlamaConfig config = load_config(from);
  const TensorStore store = TensorStore::open_directory(from);
  if (const auto before = conversion_of(config, store))
    fail("{}: was converted to {} weights already; convert the original model", from.string(),
         to_string(before->type));
  StagedDirectory staged(to);
  const LlamaWeights weights = find_llama_weights(config, store);
  const Conversion conversion{.type = type,
                              .source_type = weights.layers.front().gate->type,
                              .fingerprint = model_fingerprint(config, store)};
  Plan plan = make_plan(config, weights, type);
  int64_t done = 0;
  const auto all = static_cast<int64_t>(plan.tensors.size());
  for (TensorToMake& tensor : plan.tensors)
    tensor.make = [&, make = std::move(tensor.make)](std::span<std::byte> out) {
      if (stop.stop_requested()) throw Cancelled();
      make(out);
      if (progress) progress(++done, all);
    };

  make_safetensors(staged.path() / "model.safetensors", plan.tensors,
                   conversion_metadata(config, conversion));
  for (const char* name : kCompanions)
    if (fs::exists(from / name))
      write_file_atomically(staged.path() / name, read_file(from / name));
  staged.place();
}

}  // namespace sol
