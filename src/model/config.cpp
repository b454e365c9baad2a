#include "sol/config.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numbers>

#include "base/fail.h"
#include "base/file_io.h"
#include "base/json.h"
#include "model/config_text.h"

namespace sol {
namespace {

bool given(const Json& object, const char* field) {
  const auto it = object.find(field);
  return it != object.end() && !it->is_null();
}

// null means the same as absent in these files.
template <typename T>
T get_or(const Json& object, const char* field, T fallback, const std::string& where) {
  return given(object, field) ? json_get<T>(object, field, where) : fallback;
}

int positive(const Json& object, const char* field, const std::string& where) {
  const int value = json_get<int>(object, field, where);
  if (value <= 0) fail("{}: field \"{}\" must be positive, not {}", where, field, value);
  return value;
}

// Positive, and neither infinite nor zero once it is a float.
bool usable(double value) {
  return value >= 1e-30 && value <= 1e30;
}

// Fields that other models of this family use to change the arithmetic, with the one value that
// leaves it as implemented here. Whatever is not listed (names, dates, training settings) is
// ignored, as Hugging Face does.
struct NeutralField {
  const char* name;
  Json value;
};
const std::vector<NeutralField>& neutral_fields() {
  static const std::vector<NeutralField> fields{
      {"attention_bias", false},
      {"mlp_bias", false},
      {"qkv_bias", false},
      {"use_qkv_bias", false},
      {"use_qk_norm", false},
      {"qk_layernorm", false},
      {"partial_rotary_factor", 1.0},
      {"rope_interleaved", false},
      {"embedding_multiplier", 1.0},
      {"attention_multiplier", 1.0},
      {"residual_multiplier", 1.0},
      {"logits_scaling", 1.0},
      {"logit_scale", 1.0},
      {"scale_emb", 1.0},
      {"num_experts", 0},
      {"num_local_experts", 0},
      {"attn_logit_softcapping", 0},
      {"final_logit_softcapping", 0},
      {"query_pre_attn_scalar", 0},
      {"clip_qkv", 0},
      {"alibi", false},
      {"parallel_attn", false},
  };
  return fields;
}

void reject_other_arithmetic(const Json& json, const std::string& where) {
  for (const NeutralField& field : neutral_fields())
    if (given(json, field.name) && json[field.name] != field.value)
      fail("{}: field \"{}\" is {}, which would change the arithmetic; only {} is implemented",
           where, field.name, json[field.name].dump(), field.value.dump());
  if (given(json, "quantization_config"))
    fail(
        "{}: field \"quantization_config\": quantised weights are not supported; use the BF16, F16 "
        "or F32 version of the model",
        where);
  const std::string act = get_or<std::string>(json, "hidden_act", "silu", where);
  if (act != "silu" && act != "swish")
    fail("{}: field \"hidden_act\" is \"{}\"; only \"silu\" is implemented", where, act);
  if (given(json, "layer_types"))
    for (const Json& type : json["layer_types"])
      if (type != "full_attention")
        fail("{}: field \"layer_types\" names {}; only \"full_attention\" is implemented", where,
             type.dump());
  if (given(json, "no_rope_layers"))
    for (const Json& rotary : json["no_rope_layers"])
      if (rotary != 1)
        fail("{}: field \"no_rope_layers\": layers without rotary embedding are not implemented",
             where);
}

void check_architecture(const Json& json, const std::string& where) {
  if (!given(json, "architectures")) return;
  for (const Json& element : json["architectures"]) {
    std::string name = element.is_string() ? element.get<std::string>() : element.dump();
    std::string lower = name;
    std::ranges::transform(lower, lower.begin(),
                           [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    if (lower != "llamaforcausallm" && lower != "mistralforcausallm" && lower != "llamamodel" &&
        lower != "mistralmodel")
      fail(
          "{}: field \"architectures\" names {}; only LlamaForCausalLM and MistralForCausalLM are "
          "implemented",
          where, name);
  }
}

// Hugging Face renamed "type" to "rope_type", and later "rope_scaling" to "rope_parameters", which
// holds rope_theta as well.
void read_rope(const Json& json, const std::string& where, LlamaConfig& config) {
  config.rope_theta = get_or(json, "rope_theta", 10000.0, where);
  const char* field = given(json, "rope_scaling") ? "rope_scaling" : "rope_parameters";
  if (given(json, field)) {
    const Json& rope = json[field];
    const std::string inside = where + ": " + field;
    if (!rope.is_object()) fail("{}: field \"{}\" must be an object", where, field);
    config.rope_theta = get_or(rope, "rope_theta", config.rope_theta, inside);
    if (get_or(rope, "partial_rotary_factor", 1.0, inside) != 1.0)
      fail("{}: field \"partial_rotary_factor\": only 1 is implemented", inside);
    const std::string older = get_or<std::string>(rope, "type", "default", inside);
    const std::string type = get_or(rope, "rope_type", older, inside);
    if (given(rope, "type") && type != older)
      fail("{}: rope_type is \"{}\", but type is \"{}\"", inside, type, older);
    if (given(rope, "factor") && !given(rope, "type") && !given(rope, "rope_type"))
      fail("{}: has a factor, but no rope_type that says what to do with it", inside);
    if (type == "llama3") {
      Llama3RopeScaling scaling;
      scaling.factor = json_get<double>(rope, "factor", inside);
      scaling.low_freq_factor = json_get<double>(rope, "low_freq_factor", inside);
      scaling.high_freq_factor = json_get<double>(rope, "high_freq_factor", inside);
      scaling.original_max_position_embeddings =
          positive(rope, "original_max_position_embeddings", inside);
      if (!usable(scaling.factor) || !usable(scaling.low_freq_factor) ||
          !usable(scaling.high_freq_factor) || scaling.high_freq_factor <= scaling.low_freq_factor)
        fail("{}: needs factor > 0 and high_freq_factor > low_freq_factor > 0, not {}, {} and {}",
             inside, scaling.factor, scaling.high_freq_factor, scaling.low_freq_factor);
      config.rope_scaling = scaling;
    } else if (type != "default") {
      fail("{}: rope_type \"{}\" is not implemented; \"default\" and \"llama3\" are", inside, type);
    }
  }
  if (!usable(config.rope_theta))
    fail("{}: field \"rope_theta\" must be positive, not {}", where, config.rope_theta);
}

void read_attention_sizes(const Json& json, const std::string& where, LlamaConfig& config) {
  config.num_heads = positive(json, "num_attention_heads", where);
  // Hugging Face's defaults for a field left out: all heads for Llama, 8 for Mistral.
  config.num_kv_heads = given(json, "num_key_value_heads")
                            ? positive(json, "num_key_value_heads", where)
                            : (config.model_type == "mistral" ? 8 : config.num_heads);
  if (config.num_heads % config.num_kv_heads != 0)
    fail("{}: num_attention_heads {} is not a multiple of num_key_value_heads {}", where,
         config.num_heads, config.num_kv_heads);
  if (given(json, "head_dim")) {
    config.head_dim = positive(json, "head_dim", where);
  } else {
    if (config.hidden_size % config.num_heads != 0)
      fail(
          "{}: hidden_size {} is not a multiple of num_attention_heads {} and there is no head_dim",
          where, config.hidden_size, config.num_heads);
    config.head_dim = config.hidden_size / config.num_heads;
  }
  if (config.head_dim % 2 != 0)
    fail("{}: head_dim must be even for the rotary embedding, not {}", where, config.head_dim);
  if (static_cast<int64_t>(config.num_heads) * config.head_dim > std::numeric_limits<int>::max())
    fail("{}: num_attention_heads {} times head_dim {} is too large", where, config.num_heads,
         config.head_dim);
}

// Attention here sees the whole context, so a window is acceptable only when it never closes.
void check_sliding_window(const Json& json, const std::string& where, const LlamaConfig& config) {
  if (!get_or(json, "use_sliding_window", true, where)) return;
  int64_t window = 0;
  if (json.contains("sliding_window")) {
    if (json["sliding_window"].is_null()) return;
    window = json_get<int64_t>(json, "sliding_window", where);
  } else if (config.model_type == "mistral") {
    window = 4096;  // Hugging Face's default for a Mistral
  } else {
    return;
  }
  if (window < config.max_position_embeddings)
    fail(
        "{}: sliding_window {} is smaller than max_position_embeddings {}; sliding-window "
        "attention "
        "is not implemented (lower max_position_embeddings to the window to use the model within "
        "it)",
        where, window, config.max_position_embeddings);
}

std::vector<int> read_token_ids(const Json& json, const char* field, const std::string& where) {
  if (!given(json, field)) return {};
  std::vector<int> ids;
  if (const Json& value = json[field]; value.is_array()) {
    for (const Json& element : value) {
      const Json wrapped{{field, element}};
      ids.push_back(json_get<int>(wrapped, field, where));
    }
  } else {
    ids.push_back(json_get<int>(json, field, where));
  }
  std::erase_if(ids, [](int id) { return id < 0; });  // -1 says "none"
  return ids;
}

}  // namespace

LlamaConfig parse_config(std::string_view text, const std::string& where) {
  const Json json = parse_json(text, where);
  LlamaConfig config;
  config.model_type = json_get<std::string>(json, "model_type", where);
  if (config.model_type != "llama" && config.model_type != "mistral")
    fail("{}: model_type \"{}\" is not supported; \"llama\" and \"mistral\" are", where,
         config.model_type);
  check_architecture(json, where);
  reject_other_arithmetic(json, where);

  config.hidden_size = positive(json, "hidden_size", where);
  config.intermediate_size = positive(json, "intermediate_size", where);
  config.num_layers = positive(json, "num_hidden_layers", where);
  config.vocab_size = positive(json, "vocab_size", where);
  config.max_position_embeddings = positive(json, "max_position_embeddings", where);
  read_attention_sizes(json, where, config);
  check_sliding_window(json, where, config);
  config.rms_norm_eps = get_or(json, "rms_norm_eps", 1e-6, where);  // Hugging Face's default
  if (!usable(config.rms_norm_eps))
    fail("{}: field \"rms_norm_eps\" must be positive, not {}", where, config.rms_norm_eps);
  read_rope(json, where, config);
  config.tie_word_embeddings = get_or(json, "tie_word_embeddings", false, where);

  const std::vector<int> bos = read_token_ids(json, "bos_token_id", where);
  if (!bos.empty()) config.bos_token_id = bos.front();
  config.eos_token_ids = read_token_ids(json, "eos_token_id", where);
  return config;
}

LlamaConfig load_config(const std::filesystem::path& dir) {
  constexpr const char* wanted =
      "a model is a directory in Hugging Face's format: config.json, *.safetensors, tokenizer.json";
  if (!path_exists(dir)) fail("{}: does not exist; {}", dir.string(), wanted);
  const std::filesystem::path path = dir / "config.json";
  if (!path_exists(path)) fail("{}: there is no config.json; {}", dir.string(), wanted);
  LlamaConfig config = parse_config(read_file(path), path.string());
  const std::filesystem::path generation = dir / "generation_config.json";
  if (path_exists(generation)) {
    const Json overrides = read_json(generation);
    if (!overrides.is_object()) fail("{}: must be a JSON object", generation.string());
    if (given(overrides, "eos_token_id"))
      config.eos_token_ids = read_token_ids(overrides, "eos_token_id", generation.string());
  }
  return config;
}

// transformers/modeling_rope_utils.py, _compute_default_rope_parameters and
// _compute_llama3_parameters: float32 tensors throughout, where "scalar / tensor" is a
// multiplication by the reciprocal.
std::vector<float> rotary_inverse_frequencies(const LlamaConfig& config) {
  const int half = config.head_dim / 2;
  std::vector<float> frequencies(static_cast<size_t>(half));
  const float base = static_cast<float>(config.rope_theta);
  for (int i = 0; i < half; ++i) {
    const float exponent = static_cast<float>(2 * i) / static_cast<float>(config.head_dim);
    const float power =
        static_cast<float>(std::pow(static_cast<double>(base), static_cast<double>(exponent)));
    frequencies[static_cast<size_t>(i)] = 1.0f / power;
  }
  if (!config.rope_scaling) return frequencies;

  const Llama3RopeScaling& scaling = *config.rope_scaling;
  const double context = scaling.original_max_position_embeddings;
  const float low_wavelength = static_cast<float>(context / scaling.low_freq_factor);
  const float high_wavelength = static_cast<float>(context / scaling.high_freq_factor);
  const float factor = static_cast<float>(scaling.factor);
  for (float& frequency : frequencies) {
    const float wavelength = 1.0f / frequency * static_cast<float>(2.0 * std::numbers::pi);
    if (wavelength > low_wavelength) {
      frequency /= factor;
    } else if (wavelength >= high_wavelength) {
      const float smooth = (1.0f / wavelength * static_cast<float>(context) -
                            static_cast<float>(scaling.low_freq_factor)) /
                           static_cast<float>(scaling.high_freq_factor - scaling.low_freq_factor);
      frequency = (1.0f - smooth) * frequency / factor + smooth * frequency;
    }
  }
  return frequencies;
}

}  // namespace sol
