// What a tokenizer promises beyond agreeing with Hugging Face.
#include "sol/tokenizer.h"

#include <gmock/gmock.h>

#include <chrono>
#include <thread>

#include "base/random.h"
#include "tokenizer_files.h"

namespace sol::test {
namespace {

using Ids = std::vector<int32_t>;

std::shared_ptr<const Tokenizer> shipped(const char* name) {
  return Tokenizer::load(test_data() / "tokenizers" / name);
}

TEST(Tokenizer, MergesByRankAndReportsItsTokens) {
  const auto tokenizer = load_made(small_tokenizer());
  EXPECT_EQ(tokenizer->encode("abcab<x>az"), (Ids{5, 4, 7, 1, 0}));
  EXPECT_EQ(tokenizer->vocab_size(), 8);
  EXPECT_EQ(tokenizer->token_id("abc"), 5);
  EXPECT_EQ(tokenizer->token_id("<s>"), 6);
  EXPECT_EQ(tokenizer->token_id("bc"), -1);
  EXPECT_EQ(tokenizer->bos_token_id(), -1);
  EXPECT_EQ(tokenizer->eos_token_id(), -1);
  EXPECT_EQ(tokenizer->describe(),
            "character-level BPE, 6 pieces, 2 added tokens, 2 merges; normaliser none; "
            "pre-tokeniser none; decoder Fuse; characters without a piece: ?");
}

TEST(Tokenizer, BytesOfATokenInsideAText) {
  const auto small = load_made(small_tokenizer());
  EXPECT_EQ(small->token_bytes(5), "abc");
  EXPECT_EQ(small->token_bytes(6), "<s>");
  EXPECT_THROW(small->token_bytes(8), Error);

  // Every text is its tokens' bytes in a row, whatever characters they cut.
  const std::string text = "Gr\u00fc\u00dfe, \u4e16\u754c \U0001F600\n x";
  for (const char* name : {"gpt2_style", "llama3_style", "sentencepiece_style"}) {
    const auto tokenizer = shipped(name);
    std::string bytes;
    for (const int32_t id : tokenizer->encode(text, {.add_special_tokens = false}))
      bytes += tokenizer->token_bytes(id);
    EXPECT_THAT(bytes, testing::EndsWith(text)) << name;
    EXPECT_LE(bytes.size(), text.size() + 1) << name;  // some put a space in front
  }
}

TEST(Tokenizer, ItsFingerprintIsOfTheFile) {
  nlohmann::json json = small_tokenizer();
  const auto tokenizer = load_made(json);
  EXPECT_EQ(tokenizer->fingerprint().size(), 32u);
  EXPECT_EQ(load_made(json)->fingerprint(), tokenizer->fingerprint());
  json["model"]["merges"] = {"ab c", "a b"};
  EXPECT_NE(load_made(json)->fingerprint(), tokenizer->fingerprint());
}

TEST(Tokenizer, BeginAndEndComeFromItsConfig) {
  const auto tokenizer =
      load_text(small_tokenizer().dump(),
                R"({"bos_token": {"content": "<s>", "special": true}, "eos_token": "<x>"})");
  EXPECT_EQ(tokenizer->bos_token_id(), 6);
  EXPECT_EQ(tokenizer->eos_token_id(), 7);
}

TEST(Tokenizer, SpecialTokensInTheTextAreTextWhenAskedFor) {
  nlohmann::json json = small_tokenizer();
  json["added_tokens"][0]["content"] = "ab";
  json["added_tokens"][0]["id"] = 4;
  const auto tokenizer = load_made(json);
  EXPECT_EQ(tokenizer->encode("abc"), (Ids{4, 3}));
  EXPECT_EQ(tokenizer->encode("abc", {.parse_special_tokens = false}), (Ids{5}));
  // A token that is added but not special is found all the same.
  EXPECT_EQ(tokenizer->encode("a<x>", {.parse_special_tokens = false}), (Ids{1, 7}));
}

TEST(Tokenizer, BrokenUtf8IsReplacedBeforeEncoding) {
  const auto tokenizer = shipped("gpt2_style");
  EXPECT_EQ(tokenizer->encode("a\xE3\x81"
                              "b\xFF"),
            tokenizer->encode("a\xEF\xBF\xBD"
                              "b\xEF\xBF\xBD"));
  EXPECT_EQ(tokenizer->decode(tokenizer->encode("a\xE3\x81"
                                                "b\xFF")),
            "a\xEF\xBF\xBD"
            "b\xEF\xBF\xBD");
}

TEST(Tokenizer, StreamHandsOutTextAsSoonAsItIsComplete) {
  const auto tokenizer = shipped("gpt2_style");
  const Ids ids = tokenizer->encode(
      "a\xF0\x9F\x99\x82"
      "b");
  ASSERT_EQ(ids.size(), 6u);
  const auto stream = tokenizer->stream();
  EXPECT_EQ(stream->push(ids[0]), "a");
  EXPECT_EQ(stream->push(ids[1]), "");
  EXPECT_EQ(stream->push(ids[2]), "");
  EXPECT_EQ(stream->push(ids[3]), "");
  EXPECT_EQ(stream->push(ids[4]), "\xF0\x9F\x99\x82");
  EXPECT_EQ(stream->push(ids[5]), "b");
  EXPECT_EQ(stream->push(ids[1]), "");
  EXPECT_EQ(stream->finish(), "\xEF\xBF\xBD");
}

TEST(Tokenizer, StreamOfSentencePieceTextIsNotHeldBack) {
  const auto tokenizer = shipped("sentencepiece_style");
  const Ids ids = tokenizer->encode("the river", {.add_special_tokens = false});
  const auto stream = tokenizer->stream();
  std::string text;
  for (size_t i = 0; i < ids.size(); ++i) {
    const std::string piece = stream->push(ids[i]);
    EXPECT_FALSE(piece.empty()) << i;
    text += piece;
  }
  EXPECT_EQ(text, "the river");
  EXPECT_EQ(stream->finish(), "");
}

TEST(Tokenizer, StreamEqualsDecodeForRandomIds) {
  for (const char* name : {"gpt2_style", "sentencepiece_style", "some_fallback_bytes",
                           "metaspace_style", "unknown_left_out"}) {
    const auto tokenizer = shipped(name);
    Random random({.seed = 7});
    for (int round = 0; round < 300; ++round) {
      Ids ids;
      const auto limit = static_cast<uint32_t>(tokenizer->vocab_size());
      for (uint32_t n = random.below(20); n > 0; --n) {
        ids.push_back(static_cast<int32_t>(random.below(random.below(2) ? limit : 300)));
      }
      for (const bool skip : {false, true}) {
        EXPECT_EQ(decode_by_stream(*tokenizer, ids, skip), tokenizer->decode(ids, skip)) << name;
      }
    }
  }
}

TEST(Tokenizer, IdsOutsideTheVocabularyAreErrors) {
  const auto tokenizer = load_made(small_tokenizer());
  for (const int32_t id : {-1, 8, INT32_MAX, INT32_MIN}) {
    EXPECT_THROW(tokenizer->decode(Ids{id}), Error) << id;
    EXPECT_THROW(tokenizer->stream()->push(id), Error) << id;
  }
  nlohmann::json gap = small_tokenizer();
  gap["added_tokens"][1]["id"] = 20;
  const auto with_gap = load_made(gap);
  EXPECT_EQ(with_gap->vocab_size(), 21);
  EXPECT_EQ(with_gap->decode(Ids{20}), "<x>");
  EXPECT_THROW(with_gap->decode(Ids{12}), Error);
}

TEST(Tokenizer, TextOfEveryByteComesBack) {
  std::string text;
  for (int c = 0; c < 0x80; ++c) text += static_cast<char>(c);
  text += "\xC2\x80\xDF\xBF\xE0\xA0\x80\xEF\xBF\xBF\xF0\x90\x80\x80\xF4\x8F\xBF\xBF";
  for (const char* name : {"gpt2_style", "llama3_style", "qwen_style", "sentencepiece_style"}) {
    const auto tokenizer = shipped(name);
    EXPECT_EQ(tokenizer->decode(tokenizer->encode(text), true), text) << name;
  }
}

TEST(Tokenizer, ThreadsShareIt) {
  const auto tokenizer = shipped("gpt2_style");
  const std::string text = read_file(test_data() / "tokenizers/README.md");
  const Ids expected = tokenizer->encode(text);
  std::vector<std::thread> threads;
  std::vector<int> wrong(4, 0);
  for (size_t i = 0; i < wrong.size(); ++i) {
    threads.emplace_back([&, i] {
      for (int round = 0; round < 20; ++round) wrong[i] += tokenizer->encode(text) != expected;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, std::vector<int>(4, 0));
}

// Quadratic time would need minutes for these.
TEST(Tokenizer, LongWordsAndRunsOfMarksTakeLinearTime) {
  std::string marks = "a";
  for (int i = 0; i < 100000; ++i) marks += "\xCC\x81\xCC\x96";
  const std::string texts[] = {std::string(300000, 'a'), std::string(300000, ' '), marks,
                               std::string(200000, '<')};
  const auto start = std::chrono::steady_clock::now();
  for (const char* name : {"gpt2_style", "llama3_style", "qwen_style", "sentencepiece_style",
                           "unknown_fused", "splits"}) {
    const auto tokenizer = shipped(name);
    for (const std::string& text : texts) {
      const bool removed = name == std::string("splits") && text[0] != 'a';
      EXPECT_EQ(tokenizer->encode(text).empty(), removed) << name << " " << text[0];
    }
  }
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(60));
}

// The cache forgets when it is full; ids must not change.
TEST(Tokenizer, ManyDifferentWordsOverflowTheCache) {
  const auto tokenizer = shipped("gpt2_style");
  const Ids expected = tokenizer->encode(" river stone");
  std::string text;
  for (int i = 0; i < 90000; ++i) text += " w" + std::to_string(i) + "x";
  const Ids ids = tokenizer->encode(text);
  EXPECT_EQ(tokenizer->decode(ids), text);
  EXPECT_EQ(tokenizer->encode(" river stone"), expected);
}

}  // namespace
}  // namespace sol::test
