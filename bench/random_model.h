// A model directory with random weights, for benchmarks: speed does not depend on the weights.
#pragma once

#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include "base/fail.h"
#include "base/file_io.h"
#include "base/json.h"
#include "base/random.h"
#include "base/threads.h"
#include "model/safetensors.h"

namespace sol {

// By default 27.3 M parameters, the shape that the reference implementation's training was measured
// with.
struct RandomShape {
  int width = 512, layers = 8, heads = 8, kv_heads = 4, mlp = 1536, vocabulary = 4096,
      positions = 2048;
};

// A Hugging Face directory with normal weights, removed at the end.
class RandomModel {
 public:
  explicit RandomModel(const RandomShape& s) {
    std::string pattern = (std::filesystem::temp_directory_path() / "sol-bench-XXXXXX").string();
    if (!mkdtemp(pattern.data())) fail("no temporary directory can be made");
    dir_ = pattern;
    const Json config{{"model_type", "llama"},          {"hidden_size", s.width},
                      {"intermediate_size", s.mlp},     {"num_hidden_layers", s.layers},
                      {"num_attention_heads", s.heads}, {"num_key_value_heads", s.kv_heads},
                      {"vocab_size", s.vocabulary},     {"max_position_embeddings", s.positions},
                      {"rms_norm_eps", 1e-5},           {"rope_theta", 500000.0},
                      {"hidden_act", "silu"},           {"tie_word_embeddings", true}};
    write_file_atomically(dir_ / "config.json", config.dump());
    const int kv = s.width / s.heads * s.kv_heads;
    add("model.embed_tokens.weight", {s.vocabulary, s.width});
    add("model.norm.weight", {s.width});
    for (int layer = 0; layer < s.layers; ++layer) {
      const std::string prefix = "model.layers." + std::to_string(layer) + ".";
      add(prefix + "input_layernorm.weight", {s.width});
      add(prefix + "post_attention_layernorm.weight", {s.width});
      add(prefix + "self_attn.q_proj.weight", {s.width, s.width});
      add(prefix + "self_attn.k_proj.weight", {kv, s.width});
      add(prefix + "self_attn.v_proj.weight", {kv, s.width});
      add(prefix + "self_attn.o_proj.weight", {s.width, s.width});
      add(prefix + "mlp.gate_proj.weight", {s.mlp, s.width});
      add(prefix + "mlp.up_proj.weight", {s.mlp, s.width});
      add(prefix + "mlp.down_proj.weight", {s.width, s.mlp});
    }
    std::vector<TensorToWrite> tensors;
    for (const Values& v : values_) {
      tensors.push_back({v.name, DType::f32, v.shape, std::as_bytes(std::span(v.values))});
    }
    write_safetensors(dir_ / "model.safetensors", tensors);
    values_ = {};
  }
  ~RandomModel() {
    std::error_code ignored;
    std::filesystem::remove_all(dir_, ignored);
  }
  RandomModel(const RandomModel&) = delete;
  RandomModel& operator=(const RandomModel&) = delete;
  const std::filesystem::path& dir() const { return dir_; }

 private:
  struct Values {
    std::string name;
    std::vector<int64_t> shape;
    std::vector<float> values;
  };

  void add(const std::string& name, std::vector<int64_t> shape) {
    int64_t count = 1;
    for (int64_t n : shape) count *= n;
    Values v{name, shape, std::vector<float>(static_cast<size_t>(count), 1.0f)};
    if (shape.size() == 2) {
      const double scale = 1.0 / std::sqrt(static_cast<double>(shape[1]));
      parallel_for(shape[0], [&](int64_t row) {
        Random random({.seed = values_.size(), .block = static_cast<uint64_t>(row)});
        for (int64_t i = 0; i < shape[1]; ++i) {
          v.values[static_cast<size_t>(row * shape[1] + i)] =
              static_cast<float>(random.normal() * scale);
        }
      });
    }
    values_.push_back(std::move(v));
  }

  std::filesystem::path dir_;
  std::vector<Values> values_;
};

}  // namespace sol
