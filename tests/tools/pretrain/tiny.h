// A small model to train and text for it.
#pragma once

#include <string>

#include "base/file_io.h"
#include "base/json.h"
#include "support.h"
#include "trainer.h"

namespace sol::pretrain {

// A directory with the shipped tokenizer, the configuration of a tiny Llama, and text.
class TinyModel {
 public:
  explicit TinyModel(bool tied = true) {
    const auto from = test::source_dir() / "models" / "default";
    for (const char* name : {"tokenizer.json", "tokenizer_config.json"})
      write_file_atomically(path() / name, read_file(from / name));
    const Json config{
        {"model_type", "llama"},  {"hidden_size", 64},        {"intermediate_size", 96},
        {"num_hidden_layers", 2}, {"num_attention_heads", 4}, {"num_key_value_heads", 2},
        {"head_dim", 16},         {"vocab_size", 4096},       {"max_position_embeddings", 256},
        {"rms_norm_eps", 1e-5},   {"rope_theta", 10000.0},    {"tie_word_embeddings", tied},
        {"hidden_act", "silu"},   {"bos_token_id", 4092},     {"eos_token_id", 4093}};
    write_file_atomically(path() / "config.json", to_text(config, 2));
    std::string text;
    for (int i = 0; i < 60; ++i)
      text += "The river rose " + std::to_string(i * 37 % 101) +
              " feet in the night, and the miller's wife counted " + std::to_string(i) +
              " sacks of flour.\n" + (i % 7 == 6 ? "<|endoftext|>\n" : "");
    write_file_atomically(path() / "text.txt", text);
  }
  const std::filesystem::path& path() const { return dir_.path(); }
  LlamaConfig config() const { return load_config(path()); }

  // A few steps of training in F32 into path() / name.
  TrainerOptions options(const std::string& name) const {
    TrainerOptions o;
    o.model = path();
    o.data = {path() / "text.txt"};
    o.out = path() / name;
    o.cache = path() / "cache";
    o.precision = "f32";
    o.window = 70;  // no multiple of any block
    o.step_tokens = 280;
    o.optimizer.learning_rate = 5e-3;
    o.warmup_tokens = 500;
    o.log_steps = 2;
    o.save_f32 = true;
    return o;
  }

 private:
  test::TemporaryDirectory dir_;
};

inline bool train(const TrainerOptions& options, std::stop_token stop = {}) {
  return pretrain(
      options, [](const std::string&) {}, stop);
}

}  // namespace sol::pretrain
