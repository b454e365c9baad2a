// sol tokenize and sol detokenize.
#include <nlohmann/json.hpp>

#include "run_program.h"

namespace sol::test {
namespace {

using Json = nlohmann::json;

Json ids_of(const std::string& text, std::vector<std::string> more = {}) {
  more.insert(more.begin(), "tokenize");
  const RunResult result = run_sol(more, {.input = text});
  EXPECT_EQ(result.code, 0) << testing::PrintToString(result);
  return Json::parse(result.out).at("ids");
}

std::string text_of(const Json& input, std::vector<std::string> more = {}) {
  more.insert(more.begin(), "detokenize");
  const RunResult result = run_sol(more, {.input = input.dump()});
  EXPECT_EQ(result.code, 0) << testing::PrintToString(result);
  return result.out;
}

TEST(TokenizeCommand, TextComesBackByteForByte) {
  for (const std::string text :
       {"Plain words, 12345 and\ttabs\r\n\n  with  spaces ",
        "Übergröße, naïve, Ελλάδα, 日本語, 🙂👩‍👩‍👧", "",
        "no newline at the end", "\n"}) {
    const Json ids = ids_of(text, {"--no-bos"});
    EXPECT_EQ(text_of(ids), text);
    EXPECT_EQ(text_of({{"ids", ids}}), text);
  }
}

TEST(TokenizeCommand, TheBeginTokenIsPutBeforeUnlessRefused) {
  Json with = ids_of("Once"), without = ids_of("Once", {"--no-bos"});
  ASSERT_EQ(with.size(), without.size() + 1);
  EXPECT_EQ(with[0], 4092);
  with.erase(0);
  EXPECT_EQ(with, without);
  EXPECT_EQ(text_of({4092, 4093}), "<|begin_of_text|><|end_of_text|>");
  EXPECT_EQ(text_of({4092, 4093}, {"--skip-special"}), "");
}

TEST(TokenizeCommand, BadIdsAreNamed) {
  const auto fails = [](const std::string& input, const std::vector<std::string>& words) {
    const RunResult result = run_sol({"detokenize"}, {.input = input});
    expect_error(result, words);
    EXPECT_TRUE(result.out.empty());
  };
  fails("", {"standard input"});
  fails("[1, 2", {"standard input"});
  fails("{\"tokens\": [1]}", {"ids"});
  fails("[1, -2]", {"entry 1", "-2"});
  fails("[1, 2.5]", {"entry 1", "2.5"});
  fails("[1, 4096]", {"4096"});
  fails("[18446744073709551615]", {"18446744073709551615"});
}

}  // namespace
}  // namespace sol::test
