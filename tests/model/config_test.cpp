#include "sol/config.h"

#include "model_files.h"
#include "throws.h"

namespace sol {
namespace {

using test::golden;
using test::throws;

class ConfigTest : public testing::Test {
 protected:
  ConfigTest() : json_(read_json(golden("tiny_llama3rope_f32/config.json"))) {}
  LlamaConfig load() {
    write_file_atomically(dir_.path() / "config.json", json_.dump());
    return load_config(dir_.path());
  }
  auto loading() {
    return [this] { load(); };
  }

  test::TemporaryDirectory dir_;
  Json json_;
};

TEST_F(ConfigTest, ReadsEveryField) {
  const LlamaConfig config = load();
  EXPECT_EQ(config.model_type, "llama");
  EXPECT_EQ(config.hidden_size, 64);
  EXPECT_EQ(config.intermediate_size, 128);
  EXPECT_EQ(config.num_layers, 3);
  EXPECT_EQ(config.num_heads, 4);
  EXPECT_EQ(config.num_kv_heads, 2);
  EXPECT_EQ(config.group(), 2);
  EXPECT_EQ(config.head_dim, 16);
  EXPECT_EQ(config.vocab_size, 320);
  EXPECT_EQ(config.max_position_embeddings, 256);
  EXPECT_EQ(config.rms_norm_eps, 1e-5);
  EXPECT_EQ(config.rope_theta, 500000.0);
  EXPECT_TRUE(config.tie_word_embeddings);
  EXPECT_EQ(config.bos_token_id, 1);
  EXPECT_EQ(config.eos_token_ids, std::vector<int>{2});
  ASSERT_TRUE(config.rope_scaling);
  EXPECT_EQ(config.rope_scaling->factor, 8.0);
  EXPECT_EQ(config.rope_scaling->low_freq_factor, 1.0);
  EXPECT_EQ(config.rope_scaling->high_freq_factor, 4.0);
  EXPECT_EQ(config.rope_scaling->original_max_position_embeddings, 64);
}

TEST_F(ConfigTest, FieldsLeftOutHaveHuggingFacesDefaults) {
  for (const char* field : {"head_dim", "num_key_value_heads", "rope_theta", "rope_scaling",
                            "rms_norm_eps", "tie_word_embeddings", "bos_token_id", "eos_token_id",
                            "hidden_act", "architectures", "attention_bias", "mlp_bias"})
    json_.erase(field);
  const LlamaConfig config = load();
  EXPECT_EQ(config.head_dim, 16);
  EXPECT_EQ(config.num_kv_heads, 4);
  EXPECT_EQ(config.rope_theta, 10000.0);
  EXPECT_FALSE(config.rope_scaling);
  EXPECT_EQ(config.rms_norm_eps, 1e-6);
  EXPECT_FALSE(config.tie_word_embeddings);
  EXPECT_EQ(config.bos_token_id, -1);
  EXPECT_TRUE(config.eos_token_ids.empty());
}

TEST_F(ConfigTest, HeadDimMayDifferFromHiddenOverHeads) {
  json_["head_dim"] = 24;
  EXPECT_EQ(load().head_dim, 24);
}

TEST_F(ConfigTest, GenerationConfigOverridesTheEndTokens) {
  write_file_atomically(dir_.path() / "generation_config.json", R"({"eos_token_id": [5, 6]})");
  EXPECT_EQ(load().eos_token_ids, (std::vector<int>{5, 6}));
  write_file_atomically(dir_.path() / "generation_config.json", R"({"temperature": 1})");
  EXPECT_EQ(load().eos_token_ids, std::vector<int>{2});
  write_file_atomically(dir_.path() / "generation_config.json", R"({"eos_token_id": "x"})");
  EXPECT_THAT(loading(), throws({"generation_config.json", "eos_token_id"}));
}

TEST_F(ConfigTest, NewerSpellingsOfTheRotarySettings) {
  json_["rope_scaling"]["type"] = json_["rope_scaling"]["rope_type"];
  json_["rope_scaling"].erase("rope_type");
  EXPECT_TRUE(load().rope_scaling);
  json_["rope_scaling"]["rope_type"] = "default";
  EXPECT_THAT([&] { load(); }, throws({"rope_scaling", "default", "llama3"}));
  json_["rope_scaling"].erase("rope_type");
  json_["rope_scaling"].erase("type");
  EXPECT_THAT([&] { load(); }, throws({"rope_scaling", "factor", "rope_type"}));
  json_["rope_scaling"]["rope_type"] = "llama3";
  json_["rope_parameters"] = json_["rope_scaling"];
  json_["rope_parameters"]["rope_theta"] = 7000.0;
  json_.erase("rope_scaling");
  json_.erase("rope_theta");
  EXPECT_TRUE(load().rope_scaling);
  EXPECT_EQ(load().rope_theta, 7000.0);
}

TEST_F(ConfigTest, SizesMustBePositiveAndConsistent) {
  for (const char* field :
       {"hidden_size", "intermediate_size", "num_hidden_layers", "vocab_size",
        "max_position_embeddings", "num_attention_heads", "num_key_value_heads", "head_dim"}) {
    const Json before = json_;
    for (const Json& value : {Json(0), Json(-1), Json("64"), Json(1.5), Json(1e30)}) {
      json_[field] = value;
      EXPECT_THAT(loading(), throws({"config.json", field})) << value;
    }
    json_ = before;
  }
  for (const char* field : {"hidden_size", "intermediate_size", "num_hidden_layers", "vocab_size",
                            "max_position_embeddings", "num_attention_heads", "model_type"}) {
    const Json before = json_;
    json_.erase(field);
    EXPECT_THAT(loading(), throws({"config.json", field, "missing"}));
    json_ = before;
  }
}

TEST_F(ConfigTest, HeadsMustDivide) {
  json_["num_key_value_heads"] = 3;
  EXPECT_THAT(loading(), throws({"num_attention_heads 4", "num_key_value_heads 3"}));
}

TEST_F(ConfigTest, HeadDimMustBeEvenAndDerivable) {
  json_["head_dim"] = 15;
  EXPECT_THAT(loading(), throws({"head_dim", "15"}));
  json_.erase("head_dim");
  json_["hidden_size"] = 66;
  EXPECT_THAT(loading(), throws({"hidden_size 66", "head_dim"}));
}

TEST_F(ConfigTest, ProductsOfSizesThatOverflow) {
  json_["num_attention_heads"] = 1 << 20;
  json_["head_dim"] = 1 << 20;
  EXPECT_THAT(loading(), throws({"too large"}));
}

TEST_F(ConfigTest, OtherModelsAreNamed) {
  json_["model_type"] = "qwen2";
  EXPECT_THAT(loading(), throws({"config.json", "model_type", "qwen2", "llama"}));
  json_["model_type"] = "llama";
  json_["architectures"] = {"LlamaForSequenceClassification"};
  EXPECT_THAT(loading(), throws({"architectures", "LlamaForSequenceClassification"}));
}

struct OtherArithmetic {
  const char* field;
  Json value;
};
class OtherArithmeticTest : public ConfigTest,
                            public testing::WithParamInterface<OtherArithmetic> {};

TEST_P(OtherArithmeticTest, IsAnErrorThatNamesTheField) {
  json_[GetParam().field] = GetParam().value;
  EXPECT_THAT(loading(), throws({"config.json", GetParam().field}));
}

INSTANTIATE_TEST_SUITE_P(
    Config, OtherArithmeticTest,
    testing::Values(OtherArithmetic{"attention_bias", true}, OtherArithmetic{"mlp_bias", true},
                    OtherArithmetic{"hidden_act", "gelu"},
                    OtherArithmetic{"partial_rotary_factor", 0.5},
                    OtherArithmetic{"sliding_window", 128},
                    OtherArithmetic{"quantization_config", {{"bits", 4}}},
                    OtherArithmetic{"logits_scaling", 8.0}, OtherArithmetic{"num_local_experts", 8},
                    OtherArithmetic{"layer_types", Json{"full_attention", "sliding_attention"}},
                    OtherArithmetic{"no_rope_layers", Json{1, 0}},
                    OtherArithmetic{"rms_norm_eps", 0}, OtherArithmetic{"rope_theta", -1},
                    OtherArithmetic{"rope_scaling", 3}),
    [](const auto& test) { return std::string(test.param.field); });

TEST_F(ConfigTest, NeutralValuesOfThoseFieldsAreAccepted) {
  json_["partial_rotary_factor"] = 1;
  json_["sliding_window"] = nullptr;
  json_["logits_scaling"] = 1.0;
  json_["layer_types"] = {"full_attention", "full_attention", "full_attention"};
  json_["hidden_act"] = "swish";
  json_["anything_else"] = {{"x", 1}};
  EXPECT_EQ(load().num_layers, 3);
}

TEST_F(ConfigTest, MistralsWindow) {
  json_["model_type"] = "mistral";
  json_["architectures"] = {"MistralForCausalLM"};
  EXPECT_EQ(load().model_type, "mistral");  // the default window of 4096 never closes on 256
  json_["max_position_embeddings"] = 8192;
  EXPECT_THAT(loading(), throws({"sliding_window 4096", "max_position_embeddings 8192"}));
  json_["sliding_window"] = nullptr;
  EXPECT_EQ(load().max_position_embeddings, 8192);
  json_["sliding_window"] = 8192;
  EXPECT_EQ(load().max_position_embeddings, 8192);
}

TEST_F(ConfigTest, RotaryScalingIsChecked) {
  const Json before = json_;
  json_["rope_scaling"]["rope_type"] = "yarn";
  EXPECT_THAT(loading(), throws({"rope_scaling", "yarn", "llama3"}));
  json_ = before;
  json_["rope_scaling"].erase("factor");
  EXPECT_THAT(loading(), throws({"rope_scaling", "factor", "missing"}));
  json_ = before;
  json_["rope_scaling"]["high_freq_factor"] = 1.0;
  EXPECT_THAT(loading(), throws({"rope_scaling", "high_freq_factor"}));
  json_ = before;
  json_["rope_scaling"]["original_max_position_embeddings"] = 0;
  EXPECT_THAT(loading(), throws({"original_max_position_embeddings"}));
}

TEST_F(ConfigTest, UnreadableFilesAreNamed) {
  EXPECT_THAT([] { load_config("/nonexistent"); },
              throws({"/nonexistent", "does not exist", "config.json"}));
  EXPECT_THAT([&] { load_config(dir_.path()); }, throws({"there is no config.json"}));
  for (const char* text : {"", "[]", "3", "{\"model_type\":", "\xff\xfe"}) {
    write_file_atomically(dir_.path() / "config.json", text);
    EXPECT_THAT([&] { load_config(dir_.path()); }, throws({"config.json"})) << text;
  }
}

class GoldenConfigTest : public testing::TestWithParam<const char*> {};

TEST_P(GoldenConfigTest, InverseFrequenciesAreHuggingFaces) {
  const LlamaConfig config = load_config(golden(GetParam()));
  const Json expected = read_json(golden(GetParam()) / "golden.json")["inv_freq"];
  const std::vector<float> frequencies = rotary_inverse_frequencies(config);
  ASSERT_EQ(frequencies.size(), expected.size());
  for (size_t i = 0; i < frequencies.size(); ++i)
    EXPECT_FLOAT_EQ(frequencies[i], expected[i].get<float>()) << i;
}

INSTANTIATE_TEST_SUITE_P(Config, GoldenConfigTest,
                         testing::Values("tiny_tied_f32", "tiny_untied_f32", "tiny_llama3rope_f32",
                                         "tiny_sharded_f32", "tiny_tied_bf16",
                                         "tiny_nohead_dim_key_f32"));

}  // namespace
}  // namespace sol
