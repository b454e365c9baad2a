// Real tokenizers, which may not be shipped.
#include "tokenizer_files.h"

namespace sol::test {
namespace {

using Ids = std::vector<int32_t>;

std::filesystem::path tokenizers() {
  return shared_dir() / "data/tokenizers";
}

// "Once upon a time" in English and much else besides.
std::string mixed_text() {
  std::string text = read_file(shared_dir() / "data/text/tinystories_head.txt").substr(0, 20000);
  return text +
         "\n\n  Ünïcödé, 日本語のテキスト, 한국어, العربية, עברית, हिन्दी "
         "\xF0\x9F\x91\xA9\xE2\x80\x8D"
         "\xF0\x9F\x91\xA7 12345 3.14 <tag> {x: [1, 2]}\t\r\n \xE2\x96\x81 end ";
}

TEST(TokenizerShared, Llama3EncodesAndDecodesAsTheOracle) {
  SOL_SKIP_WITHOUT_SHARED();
  const auto tokenizer = Tokenizer::load(tokenizers() / "llama3_1");
  const auto cases = read_lines(tokenizers() / "llama3_oracle.jsonl");
  ASSERT_EQ(cases.size(), 319u);
  for (const auto& expected : cases) {
    const auto text = expected["text"].get<std::string>();
    const auto ids = expected["ids"].get<Ids>();
    EXPECT_EQ(tokenizer->encode(text, {.add_special_tokens = false}), ids) << expected["text"];
    EXPECT_EQ(tokenizer->decode(ids), expected["decoded"].get<std::string>()) << expected["text"];
    Ids with_begin{128000};
    with_begin.insert(with_begin.end(), ids.begin(), ids.end());
    EXPECT_EQ(tokenizer->encode(text), with_begin) << expected["text"];
  }
}

TEST(TokenizerShared, Llama3DecodesBrokenTextAsTheOracle) {
  SOL_SKIP_WITHOUT_SHARED();
  const auto tokenizer = Tokenizer::load(tokenizers() / "llama3_1");
  const auto cases = read_lines(tokenizers() / "llama3_decode_oracle.jsonl");
  ASSERT_EQ(cases.size(), 60u);
  for (const auto& expected : cases) {
    const auto ids = expected["ids"].get<Ids>();
    for (const bool skip : {false, true}) {
      const auto text = expected[skip ? "decoded_skip_special" : "decoded"].get<std::string>();
      EXPECT_EQ(tokenizer->decode(ids, skip), text);
      EXPECT_EQ(decode_by_stream(*tokenizer, ids, skip), text);
    }
  }
}

TEST(TokenizerShared, Llama3KnowsItsTokens) {
  SOL_SKIP_WITHOUT_SHARED();
  const auto tokenizer = Tokenizer::load(tokenizers() / "llama3_1");
  EXPECT_EQ(tokenizer->vocab_size(), 128256);
  EXPECT_EQ(tokenizer->bos_token_id(), 128000);
  EXPECT_EQ(tokenizer->eos_token_id(), 128009);
  EXPECT_EQ(tokenizer->token_id("<|eot_id|>"), 128009);
  EXPECT_EQ(tokenizer->token_id("Hello"), 9906);
  EXPECT_EQ(tokenizer->token_id("no such piece"), -1);
}

TEST(TokenizerShared, MistralPutsItsSpaceInFrontAndTakesItBack) {
  SOL_SKIP_WITHOUT_SHARED();
  const auto tokenizer = Tokenizer::load(tokenizers() / "mistral_v0.1");
  EXPECT_EQ(tokenizer->encode("Hello world"), (Ids{1, 22557, 1526}));
  EXPECT_EQ(tokenizer->decode(Ids{22557, 1526}), "Hello world");
  EXPECT_EQ(tokenizer->vocab_size(), 32000);
  const std::string text = mixed_text();
  EXPECT_EQ(tokenizer->decode(tokenizer->encode(text), true), [&] {
    // The one thing that does not come back: U+2581 was a space all along.
    std::string expected = text;
    expected.replace(expected.find("\xE2\x96\x81"), 3, " ");
    return expected;
  }());
}

TEST(TokenizerShared, QwenTakesTextThereAndBack) {
  SOL_SKIP_WITHOUT_SHARED();
  const auto tokenizer = Tokenizer::load(tokenizers() / "qwen3");
  const std::string text = mixed_text();
  EXPECT_EQ(tokenizer->decode(tokenizer->encode(text)), text);
  EXPECT_EQ(tokenizer->encode("Hello world"), (Ids{9707, 1879}));
  EXPECT_EQ(tokenizer->encode("e\xCC\x81"), tokenizer->encode("\xC3\xA9"));
  EXPECT_EQ(tokenizer->bos_token_id(), -1);
  EXPECT_EQ(tokenizer->token_id("<|im_end|>"), tokenizer->eos_token_id());
}

TEST(TokenizerShared, TinyStoriesBeginsWithItsToken) {
  SOL_SKIP_WITHOUT_SHARED();
  const auto tokenizer = Tokenizer::load(shared_dir() / "data/models/tinystories-656k");
  const Ids ids =
      tokenizer->encode("<|start_story|>Once upon a time", {.add_special_tokens = false});
  ASSERT_FALSE(ids.empty());
  EXPECT_EQ(ids[0], 1);
  EXPECT_EQ(tokenizer->decode(ids, true), "Once upon a time");
  EXPECT_EQ(tokenizer->bos_token_id(), 1);
  const std::string text =
      read_file(shared_dir() / "data/text/tinystories_head.txt").substr(0, 20000);
  std::string without_newlines = text;
  std::erase(without_newlines, '\n');
  EXPECT_EQ(tokenizer->decode(tokenizer->encode(without_newlines), true), without_newlines);
}

}  // namespace
}  // namespace sol::test
