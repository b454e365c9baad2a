#include "evaluation/tasks/requests.h"

#include "model/tokenizer_files.h"
#include "throws.h"

namespace sol::test {
namespace {

using Ids = std::vector<int32_t>;

// Pieces: a 1, b 2, c 3, ab 4, abc 5, <s> 6, <x> 7, space 8; <s> before every text.
std::shared_ptr<const Tokenizer> with_begin() {
  auto file = small_tokenizer();
  file["model"]["vocab"][" "] = 8;
  file["post_processor"] = nlohmann::json::parse(R"({"type": "TemplateProcessing",
    "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
    "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
    "special_tokens": {"<s>": {"id": "<s>", "ids": [6], "tokens": ["<s>"]}}})");
  return load_text(file.dump(), R"({"bos_token": "<s>", "eos_token": "<x>"})");
}
std::shared_ptr<const Tokenizer> without_begin() {
  auto file = small_tokenizer();
  file["model"]["vocab"][" "] = 8;
  return load_text(file.dump(), R"({"eos_token": "<x>"})");
}

TEST(Requests, APairIsEncodedAsOne) {
  const auto tokenizer = with_begin();
  const RequestEncoder encoder(*tokenizer, 16);
  const TokenRequest pair = encoder.pair("aab", " cb");
  EXPECT_EQ(pair.tokens, (Ids{6, 1, 4, 8, 3, 2}));
  EXPECT_EQ(pair.context, 3u);
  EXPECT_EQ(pair.scored(), 3u);
}

// Where the boundary lies inside a token, the context's own number of ids decides.
TEST(Requests, ATokenMayCrossTheBoundary) {
  const auto tokenizer = with_begin();
  const RequestEncoder encoder(*tokenizer, 16);
  const TokenRequest pair = encoder.pair("ca", "bcb");
  EXPECT_EQ(pair.tokens, (Ids{6, 3, 5, 2}));  // "ca" alone has 3 ids with <s>
  EXPECT_EQ(pair.context, 3u);
  EXPECT_THAT([&] { encoder.pair("ca", "bc"); }, throws({"\"bc\"", "no token of its own"}));
}

TEST(Requests, TrailingSpaceOfTheContextIsScored) {
  const auto tokenizer = with_begin();
  const RequestEncoder encoder(*tokenizer, 16);
  const TokenRequest pair = encoder.pair("a  ", "b");
  EXPECT_EQ(pair.tokens, (Ids{6, 1, 8, 8, 2}));
  EXPECT_EQ(pair.context, 2u);
}

TEST(Requests, TheBeginTokenIsNotGivenTwice) {
  const auto tokenizer = with_begin();
  const RequestEncoder encoder(*tokenizer, 16);
  EXPECT_EQ(encoder.encode("a"), (Ids{6, 1}));
  EXPECT_EQ(encoder.encode("<s>a"), (Ids{6, 1}));
}

TEST(Requests, AnEmptyContextIsThePrefixToken) {
  const auto begin = with_begin(), end = without_begin();
  EXPECT_EQ(RequestEncoder(*begin, 16).pair("", "ab").tokens, (Ids{6, 4}));
  EXPECT_EQ(RequestEncoder(*begin, 16).pair("", "<s>ab").tokens, (Ids{6, 4}));
  EXPECT_EQ(RequestEncoder(*end, 16).pair("", "ab").tokens, (Ids{7, 4}));
  const TokenRequest blank = RequestEncoder(*end, 16).pair(" ", "b");
  EXPECT_EQ(blank.tokens, (Ids{7, 8, 2}));
  EXPECT_EQ(blank.context, 1u);
  EXPECT_THAT([&] { RequestEncoder(*begin, 16).pair("a", ""); }, throws({"no token"}));
  const auto neither = load_made(small_tokenizer());
  EXPECT_THAT([&] { RequestEncoder(*neither, 16); }, throws({"neither a begin nor an end"}));
}

TEST(Requests, TheEndOfWhatIsTooLongIsKept) {
  const auto tokenizer = with_begin();
  const RequestEncoder encoder(*tokenizer, 4);
  const TokenRequest pair = encoder.truncated(encoder.pair("ccca", " b"));
  EXPECT_EQ(pair.tokens, (Ids{3, 3, 1, 8, 2}));  // 4 inputs and the last target
  EXPECT_EQ(pair.context, 3u);
  EXPECT_EQ(encoder.truncated(encoder.pair("a", "ccc")).context, 2u);
  EXPECT_THAT([&] { encoder.truncated(encoder.pair("a", "ccccc")); },
              throws({"5 tokens", "4 positions"}));
  EXPECT_EQ(encoder.prompt("cacb", 2), (Ids{3, 2}));
  EXPECT_THAT([&] { encoder.prompt("a", 4); }, throws({"4 positions"}));
}

// ids <s> a b c a b c a b c without merges: every one is predicted once, by full inputs at the end.
TEST(Requests, RollingWindows) {
  const auto tokenizer = with_begin();
  const RequestEncoder encoder(*tokenizer, 4);
  const auto windows = encoder.rolling("cbacbacba");  // <s> c b a c b a c b a
  ASSERT_EQ(windows.size(), 3u);
  EXPECT_EQ(windows[0].tokens, (Ids{6, 6, 3, 2, 1}));  // the begin token is itself predicted
  EXPECT_EQ(windows[0].context, 1u);
  EXPECT_EQ(windows[1].tokens, (Ids{1, 3, 2, 1, 3}));
  EXPECT_EQ(windows[1].context, 1u);
  EXPECT_EQ(windows[2].tokens, (Ids{2, 1, 3, 2, 1}));
  EXPECT_EQ(windows[2].context, 3u);
  const auto one = encoder.rolling("ab");
  ASSERT_EQ(one.size(), 1u);
  EXPECT_EQ(one[0].tokens, (Ids{6, 6, 4}));
  EXPECT_TRUE(RequestEncoder(*without_begin(), 4).rolling("").empty());
}

}  // namespace
}  // namespace sol::test
