#include "serving/continued_text.h"

#include <gtest/gtest.h>

#include "support.h"

namespace sol::test {
namespace {

std::shared_ptr<const Tokenizer> tokenizer(const char* style) {
  return Tokenizer::load(test_data() / "tokenizers" / style);
}

// With the first `count` tokens before: both texts.
std::pair<std::string, std::string> cut(const Tokenizer& tokenizer, std::span<const int32_t> ids,
                                        size_t count) {
  ContinuedText continued(tokenizer, ids.first(count));
  std::string text;
  for (const int32_t id : ids.subspan(count)) text += continued.push(id);
  text += continued.finish();
  return {continued.before(), text};
}

TEST(ContinuedText, BothPartsAreTheWholeWhereverItIsCut) {
  for (const char* style : {"sentencepiece_style", "metaspace_style", "gpt2_style", "llama3_style",
                            "some_fallback_bytes", "sentencepiece_normalized"}) {
    const auto known = tokenizer(style);
    const std::string text = "The professor said \U0001F600, \u00e9 and \u20ac to the boy";
    const std::vector<int32_t> ids = known->encode(text);
    for (size_t count = 0; count <= ids.size(); ++count) {
      const auto [before, after] = cut(*known, ids, count);
      EXPECT_EQ(before + after, known->decode(ids, true)) << style << " " << count;
    }
  }
}

TEST(ContinuedText, ASpaceBetweenThemStays) {
  for (const char* style : {"sentencepiece_style", "metaspace_style"}) {
    const auto known = tokenizer(style);
    const std::vector<int32_t> two{known->token_id("▁The"), known->token_id("▁said")};
    EXPECT_EQ(cut(*known, two, 1), (std::pair<std::string, std::string>("The", " said"))) << style;
    // After nothing but a begin token it is the text's beginning.
    const std::vector<int32_t> begun{known->token_id("<s>"), known->token_id("▁The")};
    EXPECT_EQ(cut(*known, begun, 1), (std::pair<std::string, std::string>("", "The"))) << style;
  }
}

// What a decoder holds back of the prompt is the prompt's; what it did not complete is the
// answer's.
TEST(ContinuedText, CharactersOfBytesBelongToOnePart) {
  const auto known = tokenizer("sentencepiece_style");
  const std::vector<int32_t> smile = known->encode("a\U0001F600b", {.add_special_tokens = false});
  const size_t end = smile.size() - 1;  // "b"
  EXPECT_EQ(cut(*known, smile, end), (std::pair<std::string, std::string>("a\U0001F600", "b")));
  EXPECT_EQ(cut(*known, smile, end - 1), (std::pair<std::string, std::string>("a", "\U0001F600b")));
}

TEST(ContinuedText, IdsWithoutATokenAreNoText) {
  const auto known = tokenizer("sentencepiece_style");
  const std::vector<int32_t> ids{known->token_id("▁The"), 3000, known->token_id("▁Boy"), -1};
  EXPECT_EQ(cut(*known, ids, 2), (std::pair<std::string, std::string>("The", " Boy")));
}

}  // namespace
}  // namespace sol::test
