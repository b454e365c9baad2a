// The parts that a tokenizer is made of, where they can be tested alone.
#include "model/byte_alphabet.h"
#include "model/character_class.h"
#include "model/regex.h"
#include "model/unicode_normal_form.h"
#include "model/utf8.h"
#include "tokenizer_files.h"

namespace sol::test {
namespace {

std::string lossy(std::string_view bytes) {
  std::string out;
  append_lossy_utf8(bytes, out);
  return out;
}

std::string marks(int n) {
  std::string out;
  while (n-- > 0) out += kReplacementCharacter;
  return out;
}

TEST(TokenizerUtf8, EveryMaximalBrokenPartBecomesOneMark) {
  EXPECT_EQ(lossy("abc"), "abc");
  EXPECT_EQ(lossy("\x80"), marks(1));
  EXPECT_EQ(lossy("\xC3"), marks(1));
  EXPECT_EQ(lossy("\xC0\xAF"), marks(2));          // overlong
  EXPECT_EQ(lossy("\xE0\x80\x80"), marks(3));      // overlong
  EXPECT_EQ(lossy("\xED\xA0\x80"), marks(3));      // a surrogate
  EXPECT_EQ(lossy("\xF4\x90\x80\x80"), marks(4));  // beyond U+10FFFF
  EXPECT_EQ(lossy("\xF0\x9F\x99"), marks(1));      // unfinished
  EXPECT_EQ(lossy("\xF0\x9F\x99x"), marks(1) + "x");
  EXPECT_EQ(lossy("\xF1\x80\x80\xE1\x80\xC2"
                  "b"),
            marks(3) + "b");  // Unicode's table 3-8
  EXPECT_EQ(lossy("\xF0\x9F\x99\x82"), "\xF0\x9F\x99\x82");
}

TEST(TokenizerUtf8, PortionsGiveWhatTheWholeGives) {
  const std::string bytes = "a\xF0\x9F\x99\x82\xE3\x81\xC3\xA9\xFF\xED\xA0\x80\xF0\x9F\x99";
  for (size_t first = 0; first <= bytes.size(); ++first) {
    for (size_t second = first; second <= bytes.size(); ++second) {
      LossyUtf8Stream stream;
      std::string out;
      stream.push(std::string_view(bytes).substr(0, first), out);
      EXPECT_TRUE(is_valid_utf8(out));
      stream.push(std::string_view(bytes).substr(first, second - first), out);
      EXPECT_TRUE(is_valid_utf8(out));
      stream.push(std::string_view(bytes).substr(second), out);
      stream.finish(out);
      EXPECT_EQ(out, lossy(bytes)) << first << " " << second;
    }
  }
}

TEST(TokenizerUtf8, CodePointsThereAndBack) {
  for (char32_t c :
       {U'\0', U'a', U'\x7F', U'\x80', U'\x7FF', U'\x800', U'\xFFFF', U'\x10000', U'\x10FFFF'}) {
    std::string text;
    append_utf8(c, text);
    EXPECT_TRUE(is_valid_utf8(text));
    size_t at = 0;
    EXPECT_EQ(next_code_point(text, at), c);
    EXPECT_EQ(at, text.size());
  }
}

TEST(TokenizerUtf8, ByteAlphabetIsGpt2s) {
  EXPECT_EQ(byte_to_letter(' '), "\xC4\xA0");   // U+0120
  EXPECT_EQ(byte_to_letter('\n'), "\xC4\x8A");  // U+010A
  EXPECT_EQ(byte_to_letter('a'), "a");
  EXPECT_EQ(byte_to_letter(0xAD), "\xC5\x83");  // U+0143, the last
  for (int byte = 0; byte < 256; ++byte) {
    const std::string_view letter = byte_to_letter(static_cast<unsigned char>(byte));
    size_t at = 0;
    EXPECT_EQ(letter_to_byte(next_code_point(letter, at)), byte);
  }
  EXPECT_EQ(letter_to_byte(' '), -1);
  EXPECT_EQ(letter_to_byte(0x144), -1);
  EXPECT_EQ(letter_to_byte(0x10FFFF), -1);
}

std::vector<std::string> matches(const char* pattern, std::string_view text) {
  MatchScratch scratch;
  std::vector<std::string> found;
  Pattern::regex(pattern, "test").for_each_match(text, scratch, [&](size_t begin, size_t end) {
    found.emplace_back(text.substr(begin, end - begin));
  });
  return found;
}

using Strings = std::vector<std::string>;

TEST(TokenizerRegex, ReadsOnigurumasDialect) {
  EXPECT_EQ(matches("\\s",
                    "a\xE1\xA0\x8E"
                    "b\xE3\x80\x80"
                    "c\xC2\x85"),  // U+180E is no space
            (Strings{"\xE3\x80\x80", "\xC2\x85"}));
  EXPECT_EQ(matches("\\h+", "0fG \tA9"), (Strings{"0f", "A9"}));
  EXPECT_EQ(matches("\\w+", "e\xCC\x81_\xE2\x80\xBF b\xC2\xB2"),
            (Strings{"e\xCC\x81_\xE2\x80\xBF", "b\xC2\xB2"}));
  EXPECT_EQ(matches("[\\w]+", "b\xC2\xB2"), (Strings{"b"}));
  EXPECT_EQ(matches("[^\\S\\n]+", " \n\t "), (Strings{" ", "\t "}));
  EXPECT_EQ(matches("^.", "ab\ncd"), (Strings{"a", "c"}));
  EXPECT_EQ(matches("\\p{Han}+", "\xE4\xB8\xAD\xE3\x80\x81"), (Strings{"\xE4\xB8\xAD"}));
  EXPECT_EQ(matches("\\bx", "x yx -x"), (Strings{"x", "x"}));
  EXPECT_EQ(matches("[]a]+", "]a["), (Strings{"]a"}));
  EXPECT_EQ(matches("a{1,2}", "aaa a"), (Strings{"aa", "a", "a"}));
  EXPECT_EQ(matches("\\x{61}+", "aab"), (Strings{"aa"}));
  EXPECT_EQ(matches("(?i:'s)", "'S '\xC5\xBF"), (Strings{"'S", "'\xC5\xBF"}));  // long s
}

TEST(TokenizerRegex, EmptyMatchesAdvance) {
  EXPECT_EQ(matches("b*", "abbc"), (Strings{"", "bb", ""}));
}

TEST(TokenizerRegex, EmptyPatternsAreErrors) {
  EXPECT_THROW(Pattern::regex("", "test"), Error);
  EXPECT_THROW(Pattern::literal("", "test"), Error);
}

TEST(TokenizerRegex, UnsupportedSyntaxIsAnErrorThatShowsThePattern) {
  for (const char* pattern :
       {"[a[bc]]", "[a&&b]", "[[:alpha:]]", "(", "[a", "\\", "[\\W]", "\\Qa", "a{2,1}",
        "\\p{Nonsense}", "\\p{L", "(?#", "\\C", "a{1,3}+", "a{2}+", "a{,3}", "\\x{41"}) {
    try {
      Pattern::regex(pattern, "x.json: pre_tokenizer");
      ADD_FAILURE() << pattern;
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("x.json: pre_tokenizer"), std::string::npos);
      EXPECT_NE(std::string(error.what()).find(pattern), std::string::npos) << error.what();
    }
  }
}

TEST(TokenizerRegex, EndlessBacktrackingIsAnError) {
  MatchScratch scratch;
  const Pattern pattern = Pattern::regex("(a+)+(b)\\2", "test");
  EXPECT_THROW(pattern.find(std::string(60, 'a') + "b", 0, scratch), Error);
}

TEST(TokenizerNormalForm, ComposesAndDecomposes) {
  const std::string angstrom = "\xE2\x84\xAB";  // U+212B
  EXPECT_EQ(to_normal_form(angstrom, NormalForm::nfc), "\xC3\x85");
  EXPECT_EQ(to_normal_form(angstrom, NormalForm::nfd), "A\xCC\x8A");
  EXPECT_EQ(to_normal_form("\xEF\xAC\x81", NormalForm::nfkc), "fi");
  EXPECT_EQ(to_normal_form("\xEF\xAC\x81", NormalForm::nfc), "\xEF\xAC\x81");
  // Marks are put in order of their class: U+0316 (220) before U+0301 (230).
  EXPECT_EQ(to_normal_form("q\xCC\x81\xCC\x96", NormalForm::nfkd), "q\xCC\x96\xCC\x81");
  EXPECT_EQ(to_normal_form("\xE1\x84\x92\xE1\x85\xA1\xE1\x86\xAB", NormalForm::nfc),
            "\xED\x95\x9C");
  EXPECT_EQ(to_normal_form("plain", NormalForm::nfkd), "plain");
  EXPECT_EQ(to_normal_form(std::string("\0\xC3\xA9", 3), NormalForm::nfc),
            std::string("\0\xC3\xA9", 3));
}

TEST(TokenizerCharacters, SpacesAndWords) {
  for (const char32_t c : {U' ', U'\t', U'\x85', U'\xA0', U'\x3000'}) EXPECT_TRUE(is_space(c));
  for (const char32_t c : {U'a', U'\x180E', U'\x200B', U'\xFEFF'}) EXPECT_FALSE(is_space(c));
  for (const char32_t c : {U'a', U'9', U'_', U'\x301', U'\x2160', U'\x24B6', U'\x200D'}) {
    EXPECT_TRUE(is_word(c));
  }
  for (const char32_t c : {U' ', U'-', U'\xB2', U'\x20AC'}) EXPECT_FALSE(is_word(c));
}

}  // namespace
}  // namespace sol::test
