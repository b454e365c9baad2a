// The frozen model's configuration, as read from a Hugging Face config.json.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace sol {

// Llama 3's frequency-dependent rotary scaling (Hugging Face: rope_type "llama3").
struct Llama3RopeScaling {
  double factor = 1.0;
  double low_freq_factor = 1.0;
  double high_freq_factor = 4.0;
  int original_max_position_embeddings = 8192;
};

struct LlamaConfig {
  int hidden_size = 0;        // d
  int intermediate_size = 0;  // MLP width
  int num_layers = 0;
  int num_heads = 0;     // query heads
  int num_kv_heads = 0;  // key/value heads; num_heads is a multiple of it
  int head_dim = 0;      // may differ from hidden_size / num_heads
  int vocab_size = 0;
  int max_position_embeddings = 0;
  double rms_norm_eps = 1e-5;
  double rope_theta = 10000.0;
  std::optional<Llama3RopeScaling> rope_scaling;
  bool tie_word_embeddings = false;
  int bos_token_id = -1;           // -1: none given
  std::vector<int> eos_token_ids;  // config.json may name one or several; generation_config.json
                                   // overrides where present
  std::string model_type;          // "llama" (or "mistral" where its arithmetic is the same)

  int group() const { return num_heads / num_kv_heads; }  // query heads per key head
};

// Reads DIR/config.json (and DIR/generation_config.json's eos_token_id where there is one).
// Throws Error naming file and field when the file is missing or malformed, the model_type is
// unknown, a size is not positive or inconsistent, or a field would change the arithmetic in a
// way that this program does not implement (attention_bias, mlp_bias, another hidden_act, another
// rope_type, sliding_window smaller than the context, ...).
LlamaConfig load_config(const std::filesystem::path& dir);

// Inverse rotary frequencies [head_dim / 2], computed as Hugging Face does (float32 results).
std::vector<float> rotary_inverse_frequencies(const LlamaConfig& config);

}  // namespace sol
