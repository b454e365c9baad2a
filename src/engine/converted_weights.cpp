#include "engine/converted_weights.h"

#include <array>
#include <atomic>
#include <set>

#include "base/fail.h"
#include "base/threads.h"
#include "engine/pack_weights.h"
#include "model/fingerprint.h"

namespace sol {

using kernels::Layout;
using kernels::WeightType;

namespace {

constexpr const char* kind = "sol converted model";

std::string files_of(const TensorStore& store) {
  return store.files().empty() ? "the weights" : store.files()[0].string();
}

const std::string& field(const TensorStore& store, const char* name) {
  const auto found = store.metadata().find(name);
  if (found == store.metadata().end())
    fail("{}: its metadata has no \"{}\": convert the original model again", files_of(store), name);
  return found->second;
}

void check_version(const TensorStore& store) {
  const std::string& text = field(store, "format_version");
  if (text != std::to_string(Conversion::format_version))
    fail(
        "{}: format version {}, but this program reads version {}: convert the original model "
        "again",
        files_of(store), text, Conversion::format_version);
}

class Finder {
 public:
  Finder(const TensorStore& store, WeightType type) : store_(store), type_(type) {}

  const TensorView* vector(const std::string& name, int64_t n) {
    return tensor(name, DType::f32, {n});
  }

  ConvertedMatrix matrix(const std::string& name, WeightType type, Layout layout, int in, int out) {
    const bool by_output = layout == Layout::out_major;
    const int rows = by_output ? out : in, columns = by_output ? in : out;
    const bool codes = kernels::is_compressed(type);
    const int64_t width = codes ? kernels::row_bytes(type, columns) : columns;
    const DType stored = codes ? DType::u8 : DType::bf16;
    return {tensor(name, stored, {rows, width}), type, layout, in, out};
  }

  void reject_unused() const {
    for (const auto& [name, tensor] : store_.tensors())
      if (!used_.count(name))
        fail("{}: tensor {} is not part of a converted Llama of config.json's size",
             files_of(store_), tensor.describe());
  }

 private:
  const TensorView* tensor(const std::string& name, DType type, const std::vector<int64_t>& shape) {
    const TensorView& found = store_.get(name);  // says what is missing, and the nearest names
    used_.insert(name);
    if (found.type != type || found.shape != shape)
      fail("{}: tensor {}: config.json and weights of type {} ask for {} [{}]", files_of(store_),
           found.describe(), to_string(type_), to_string(type), fmt::join(shape, ", "));
    return &found;
  }

  const TensorStore& store_;
  WeightType type_;
  std::set<std::string> used_;
};

}  // namespace

std::optional<Conversion> conversion_of(const LlamaConfig& config, const TensorStore& store) {
  const auto found = store.metadata().find("kind");
  if (found == store.metadata().end() || found->second != kind) return std::nullopt;
  check_version(store);
  Conversion result;
  const auto one_of = [&](const char* name, const auto& choices) {
    const std::string& text = field(store, name);
    for (const auto choice : choices)
      if (to_string(choice) == text) return choice;
    fail("{}: its metadata has an unknown \"{}\": \"{}\"", files_of(store), name, text);
  };
  result.type = one_of("weights", std::array{WeightType::bf16, WeightType::int8, WeightType::int4});
  result.source_type = one_of("source_dtype", std::array{DType::bf16, DType::f16, DType::f32});
  result.fingerprint = field(store, "source_fingerprint");
  if (field(store, "source_config") != arithmetic_fields(config))
    fail(
        "{}: was converted from a model with another config.json: it says\n  {}\nconfig.json "
        "says\n  {}",
        files_of(store), field(store, "source_config"), arithmetic_fields(config));
  return result;
}

std::map<std::string, std::string> conversion_metadata(const LlamaConfig& config,
                                                       const Conversion& conversion) {
  return {{"kind", kind},
          {"format_version", std::to_string(Conversion::format_version)},
          {"weights", std::string(to_string(conversion.type))},
          {"source_dtype", std::string(to_string(conversion.source_type))},
          {"source_fingerprint", conversion.fingerprint},
          {"source_config", arithmetic_fields(config)}};
}

std::string fingerprint_of(const LlamaConfig& config, const TensorStore& store) {
  const auto conversion = conversion_of(config, store);
  return conversion ? conversion->fingerprint : model_fingerprint(config, store);
}

ConvertedWeights find_converted_weights(const LlamaConfig& config, const TensorStore& store,
                                        WeightType type) {
  Finder finder(store, type);
  const int d = config.hidden_size, wide = config.intermediate_size, vocab = config.vocab_size;
  const int query = config.num_heads * config.head_dim;
  const int key = config.num_kv_heads * config.head_dim;
  const auto by_output = [&](const std::string& name, int in, int out) {
    return finder.matrix(name, type, Layout::out_major, in, out);
  };
  ConvertedWeights weights{};
  weights.embedding =
      finder.matrix("model.embed_tokens.weight", embedding_type(type), Layout::out_major, d, vocab);
  weights.head = config.tie_word_embeddings ? weights.embedding
                                            : finder.matrix("lm_head.weight", embedding_type(type),
                                                            Layout::out_major, d, vocab);
  weights.final_norm = finder.vector("model.norm.weight", d);
  for (int i = 0; i < config.num_layers; ++i) {
    const std::string layer = fmt::format("model.layers.{}.", i);
    weights.layers.push_back({
        .input_norm = finder.vector(layer + "input_layernorm.weight", d),
        .post_norm = finder.vector(layer + "post_attention_layernorm.weight", d),
        .q = by_output(layer + "self_attn.q_proj.weight", d, query),
        .k = by_output(layer + "self_attn.k_proj.weight", d, key),
        .v = by_output(layer + "self_attn.v_proj.weight", d, key),
        .o = by_output(layer + "self_attn.o_proj.weight", query, d),
        .gate_up =
            finder.matrix(layer + "mlp.gate_up_proj.weight", type, Layout::in_major, d, 2 * wide),
        .down = by_output(layer + "mlp.down_proj.weight", wide, d),
    });
  }
  finder.reject_unused();
  return weights;
}

void check_converted(const ConvertedMatrix& matrix) {
  const TensorView& tensor = *matrix.tensor;
  if (!kernels::is_compressed(matrix.type)) {
    require_finite(tensor);
    return;
  }
  if (reinterpret_cast<uintptr_t>(tensor.bytes.data()) % alignof(bf16) != 0)
    fail("tensor {}: lies at an odd address in the file: convert the original model again",
         tensor.describe());
  const int columns = matrix.layout == Layout::out_major ? matrix.in : matrix.out;
  const int64_t bytes = tensor.shape[1];
  std::atomic<int64_t> bad_scale{-1}, bad_code{-1};
  parallel_for(tensor.shape[0], [&](int64_t r) {
    const std::byte* row = tensor.bytes.data() + r * bytes;
    if (kernels::first_bad_scale(row, matrix.type, columns) >= 0) bad_scale.store(r);
    if (kernels::first_bad_code(row, matrix.type, columns) >= 0) bad_code.store(r);
  });
  if (bad_scale >= 0)
    fail("tensor {}: row {} has a scale that is not finite or too large: the file is damaged",
         tensor.describe(), bad_scale.load());
  if (bad_code >= 0)
    fail("tensor {}: row {} has a code of -128, but codes lie in -127..127: the file is damaged",
         tensor.describe(), bad_code.load());
}

}  // namespace sol
