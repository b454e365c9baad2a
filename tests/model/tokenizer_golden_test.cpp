// Encoding and decoding against what Hugging Face's library gives for the same files.
#include "tokenizer_files.h"

namespace sol::test {
namespace {

class TokenizerGolden : public testing::TestWithParam<const char*> {};

TEST_P(TokenizerGolden, AgreesWithHuggingFace) {
  const auto dir = test_data() / "tokenizers" / GetParam();
  const auto tokenizer = Tokenizer::load(dir);
  const auto cases = read_lines(dir / "cases.jsonl");
  ASSERT_GT(cases.size(), 70u);
  for (const auto& expected : cases) check_case(*tokenizer, expected);
}

INSTANTIATE_TEST_SUITE_P(Kinds, TokenizerGolden,
                         testing::Values("added_token_flags", "gpt2_style", "llama3_style",
                                         "metaspace_style", "normalizers", "qwen_style",
                                         "sentencepiece_normalized", "sentencepiece_style",
                                         "some_fallback_bytes", "splits", "unknown_fused",
                                         "unknown_left_out", "unknown_not_fused"),
                         [](const auto& param) { return std::string(param.param); });

TEST(TokenizerGolden, DefaultModelAgreesWithHuggingFace) {
  const auto tokenizer = Tokenizer::load(source_dir() / "models/default");
  const auto cases = read_lines(test_data() / "tokenizers/default_cases.jsonl");
  ASSERT_GT(cases.size(), 70u);
  for (const auto& expected : cases) check_case(*tokenizer, expected);
  EXPECT_EQ(tokenizer->vocab_size(), 4096);
  EXPECT_EQ(tokenizer->bos_token_id(), 4092);
  EXPECT_EQ(tokenizer->eos_token_id(), 4093);
}

}  // namespace
}  // namespace sol::test
