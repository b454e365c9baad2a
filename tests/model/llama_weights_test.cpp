#include "model/llama_weights.h"

#include "model/fingerprint.h"
#include "model_files.h"
#include "throws.h"

namespace sol {
namespace {

using test::EditableTensors;
using test::golden;
using test::throws;

// A golden model whose tensors and configuration a test may change.
struct Editable {
  explicit Editable(const std::string& name)
      : config(load_config(golden(name))), tensors(TensorStore::open_directory(golden(name))) {}

  TensorStore store() const {
    tensors.write(dir.path() / "model.safetensors");
    return TensorStore::open_directory(dir.path());
  }
  void find() const {
    const TensorStore opened = store();
    find_llama_weights(config, opened);
  }
  std::string fingerprint() const { return model_fingerprint(config, store()); }

  test::TemporaryDirectory dir;
  LlamaConfig config;
  EditableTensors tensors;
};

TEST(LlamaWeights, FindsEveryTensorOfAGoldenModel) {
  for (const char* name : {"tiny_tied_f32", "tiny_untied_f32", "tiny_sharded_f32", "tiny_tied_bf16",
                           "tiny_llama3rope_f32", "tiny_nohead_dim_key_f32"}) {
    const LlamaConfig config = load_config(golden(name));
    const TensorStore store = TensorStore::open_directory(golden(name));
    const LlamaWeights weights = find_llama_weights(config, store);
    EXPECT_EQ(weights.layers.size(), 3u);
    EXPECT_EQ(weights.head == weights.embedding, config.tie_word_embeddings);
    EXPECT_EQ(weights.layers[2].down->name, "model.layers.2.mlp.down_proj.weight");
    EXPECT_EQ(weights.layers[1].post_norm->name, "model.layers.1.post_attention_layernorm.weight");
  }
}

TEST(LlamaWeights, NamesWithoutModel) {
  Editable model("tiny_untied_f32");
  const std::string before = model.fingerprint();
  const EditableTensors original = model.tensors;
  for (const auto& [name, tensor] : original.tensors)
    if (name.starts_with("model.")) model.tensors.rename(name, name.substr(6));
  model.find();
  EXPECT_EQ(model.fingerprint(), before);
}

TEST(LlamaWeights, ATiedHeadUnderEitherNameOrBoth) {
  Editable model("tiny_tied_f32");
  const std::string before = model.fingerprint();
  model.tensors.rename("model.embed_tokens.weight", "lm_head.weight");
  model.find();
  EXPECT_EQ(model.fingerprint(), before);
  auto& both = model.tensors.tensors;
  both["model.embed_tokens.weight"] = both["lm_head.weight"];
  model.find();
  EXPECT_EQ(model.fingerprint(), before);
  both["lm_head.weight"].bytes[1000] ^= std::byte{1};
  EXPECT_THAT([&] { model.find(); }, throws({"tie_word_embeddings", "lm_head.weight", "differ"}));
}

TEST(LlamaWeights, RotaryBuffersAreIgnored) {
  Editable model("tiny_tied_f32");
  const std::string before = model.fingerprint();
  model.tensors.tensors["model.layers.0.self_attn.rotary_emb.inv_freq"] = {
      DType::f32, {8}, std::vector<std::byte>(32)};
  EXPECT_EQ(model.fingerprint(), before);
}

TEST(LlamaWeights, MissingTensorsAreNamed) {
  Editable model("tiny_untied_f32");
  model.tensors.tensors.erase("model.layers.1.mlp.up_proj.weight");
  EXPECT_THAT([&] { model.find(); },
              throws({"model.safetensors", "model.layers.1.mlp.up_proj.weight"}));
  Editable headless("tiny_untied_f32");
  headless.tensors.tensors.erase("lm_head.weight");
  EXPECT_THAT([&] { headless.find(); }, throws({"lm_head.weight", "tie_word_embeddings"}));
  Editable nothing("tiny_tied_f32");
  nothing.tensors.tensors.erase("model.embed_tokens.weight");
  EXPECT_THAT([&] { nothing.find(); }, throws({"embed_tokens", "lm_head"}));
  Editable empty("tiny_untied_f32");
  empty.tensors.tensors.clear();
  EXPECT_THAT([&] { empty.find(); }, throws({"embed_tokens"}));
}

TEST(LlamaWeights, AConfigThatContradictsTheTensors) {
  const auto with = [](auto change) {
    return [change] {
      Editable model("tiny_untied_f32");
      change(model.config);
      model.find();
    };
  };
  EXPECT_THAT(with([](LlamaConfig& c) { c.hidden_size = 32; }),
              throws({"embed_tokens.weight F32 [320, 64]", "[320, 32]"}));
  EXPECT_THAT(with([](LlamaConfig& c) { c.vocab_size = 321; }), throws({"[321, 64]"}));
  EXPECT_THAT(with([](LlamaConfig& c) { c.intermediate_size = 256; }),
              throws({"mlp.gate_proj.weight F32 [128, 64]", "[256, 64]"}));
  EXPECT_THAT(with([](LlamaConfig& c) { c.num_kv_heads = 4; }), throws({"k_proj", "[64, 64]"}));
  EXPECT_THAT(with([](LlamaConfig& c) { c.head_dim = 32; }), throws({"q_proj", "[128, 64]"}));
  EXPECT_THAT(with([](LlamaConfig& c) { c.num_layers = 4; }), throws({"layers.3."}));
  EXPECT_THAT(with([](LlamaConfig& c) { c.num_layers = 2147483647; }), throws({"layers.3."}));
  EXPECT_THAT(with([](LlamaConfig& c) { c.num_layers = 2; }),
              throws({"model.layers.2.", "not part of a Llama with the 2 layers"}));
  EXPECT_THAT(with([](LlamaConfig& c) { c.tie_word_embeddings = true; }), throws({"differ"}));
}

TEST(LlamaWeights, TensorsThatDoNotBelong) {
  Editable model("tiny_tied_f32");
  model.tensors.tensors["model.layers.0.self_attn.q_proj.bias"] = {
      DType::f32, {64}, std::vector<std::byte>(256)};
  EXPECT_THAT([&] { model.find(); }, throws({"q_proj.bias F32 [64]", "not part of a Llama"}));
  Editable twice("tiny_tied_f32");
  twice.tensors.tensors["norm.weight"] = twice.tensors.tensors["model.norm.weight"];
  EXPECT_THAT([&] { twice.find(); }, throws({"\"model.norm.weight\" and \"norm.weight\""}));
}

TEST(LlamaWeights, TypesThatAreNotWeights) {
  Editable model("tiny_tied_f32");
  model.tensors.tensors["model.norm.weight"] = {DType::i32, {64}, std::vector<std::byte>(256)};
  EXPECT_THAT([&] { model.find(); }, throws({"model.norm.weight I32", "F32, F16 or BF16"}));
}

TEST(Fingerprint, IsStable) {
  // A value in a released controller: changing the rule would orphan every controller.
  Editable model("tiny_tied_f32");
  EXPECT_EQ(model.fingerprint(), "304d4250f0c6a16e7895d1a020a3a0d0");
  EXPECT_EQ(model.fingerprint().size(), 32u);
}

TEST(Fingerprint, DoesNotDependOnSharding) {
  const LlamaConfig config = load_config(golden("tiny_sharded_f32"));
  const TensorStore shards = TensorStore::open_directory(golden("tiny_sharded_f32"));
  const test::TemporaryDirectory dir;
  EditableTensors(shards).write(dir.path() / "model.safetensors");
  const TensorStore single = TensorStore::open_directory(dir.path());
  EXPECT_EQ(model_fingerprint(config, shards), model_fingerprint(config, single));
}

// Every byte of a small tensor counts; so do the first and the last of a large one.
TEST(Fingerprint, ChangesWithTheWeights) {
  Editable model("tiny_tied_f32");
  const std::string before = model.fingerprint();
  for (const char* name : {"model.layers.1.mlp.down_proj.weight", "model.norm.weight",
                           "model.layers.0.self_attn.k_proj.weight"}) {
    auto& bytes = model.tensors.tensors[name].bytes;
    for (const size_t position : {size_t{0}, bytes.size() / 2 + 1, bytes.size() - 1}) {
      bytes[position] ^= std::byte{1};
      EXPECT_NE(model.fingerprint(), before) << name << " " << position;
      bytes[position] ^= std::byte{1};
    }
  }
  auto& large = model.tensors.tensors["model.embed_tokens.weight"].bytes;
  ASSERT_GT(large.size(), 65536u);
  for (const size_t position : {size_t{0}, large.size() - 1}) {
    large[position] ^= std::byte{1};
    EXPECT_NE(model.fingerprint(), before) << position;
    large[position] ^= std::byte{1};
  }
  EXPECT_EQ(model.fingerprint(), before);
}

TEST(Fingerprint, ChangesWithTheArithmeticOnly) {
  Editable model("tiny_llama3rope_f32");
  const std::string before = model.fingerprint();
  model.config.max_position_embeddings = 1000;
  model.config.eos_token_ids = {7};
  model.config.model_type = "mistral";
  EXPECT_EQ(model.fingerprint(), before);
  model.config.rms_norm_eps = 1e-6;
  EXPECT_NE(model.fingerprint(), before);
  model.config.rms_norm_eps = 1e-5;
  model.config.rope_scaling->factor = 9;
  EXPECT_NE(model.fingerprint(), before);
  model.config.rope_scaling.reset();
  EXPECT_NE(model.fingerprint(), before);
}

}  // namespace
}  // namespace sol
