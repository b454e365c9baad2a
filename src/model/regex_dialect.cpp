// Oniguruma's character types, written out for PCRE2.
#include <algorithm>
#include <array>

#include "base/fail.h"
#include "model/regex.h"

namespace sol {
namespace {

// Contents of a character class, and of its complement's class where that is not [^...] of it.
struct CharacterType {
  char name;             // as in \s; the capital letter is the complement
  std::string_view in;   // members
  std::string_view out;  // the complement's members
};

// Unicode's White_Space.
constexpr std::string_view kSpace =
    R"(\x{09}-\x{0d}\x{20}\x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000})";
constexpr std::string_view kNotSpace =
    R"(\x{00}-\x{08}\x{0e}-\x{1f}\x{21}-\x{84}\x{86}-\x{9f}\x{a1}-\x{167f}\x{1681}-\x{1fff})"
    R"(\x{200b}-\x{2027}\x{202a}-\x{202e}\x{2030}-\x{205e}\x{2060}-\x{2fff}\x{3001}-\x{d7ff})"
    R"(\x{e000}-\x{10ffff})";
// Alphabetic, marks, decimal digits and connector punctuation. Alphabetic is letters, letter
// numbers and Other_Alphabetic, which beside marks is the circled and squared letters.
constexpr std::string_view kWord =
    R"(\p{L}\p{Nl}\p{M}\p{Nd}\p{Pc}\x{24b6}-\x{24e9}\x{1f130}-\x{1f149}\x{1f150}-\x{1f169})"
    R"(\x{1f170}-\x{1f189})";
// Outside a character class Oniguruma's \w and \b have these of Latin-1 too (superscripts and
// fractions).
constexpr std::string_view kWordAlone = R"(\x{b2}\x{b3}\x{b9}\x{bc}-\x{be})";
constexpr std::string_view kHex = "0-9a-fA-F";
constexpr std::string_view kNotHex = R"(\x{00}-/:-@G-`g-\x{d7ff}\x{e000}-\x{10ffff})";

constexpr std::array<CharacterType, 3> kTypes{{
    {'s', kSpace, kNotSpace},
    {'w', kWord, {}},
    {'h', kHex, kNotHex},
}};

bool is_script(std::string_view name) {
  const bool plain = std::all_of(name.begin(), name.end(), [](unsigned char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  });
  return plain && name.size() > 2 && compiles_in_pcre2("\\p{sc:" + std::string(name) + "}");
}

class Translator {
 public:
  Translator(std::string_view pattern, const std::string& where) : text_(pattern), where_(where) {}

  std::string run() {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '\\') {
        escape(false);
      } else if (c == '[') {
        character_class();
      } else if (text_.substr(at_, 3) == "(?#") {
        skip_comment();
      } else if (c == '{') {
        interval();
      } else {
        out_ += c;
        ++at_;
      }
    }
    return std::move(out_);
  }

 private:
  [[noreturn]] void unsupported(std::string_view what) const {
    fail("{}: the pattern \"{}\" has {} at byte {}, which is not supported", where_, text_, what,
         at_);
  }

  void skip_comment() {
    const size_t end = text_.find(')', at_);
    if (end == std::string_view::npos) unsupported("a comment without end");
    at_ = end + 1;
  }

  // {n}, {n,m} and the like, of which two mean another thing in Ruby: {,n} is from 0 to n there, in
  // PCRE2 these letters, and {n,m}+ a repetition of the whole, in PCRE2 possessive.
  void interval() {
    size_t end = at_ + 1;
    const auto skip_digits = [&] {
      const size_t begin = end;
      while (end < text_.size() && text_[end] >= '0' && text_[end] <= '9') ++end;
      return end > begin;
    };
    const bool least = skip_digits();
    const bool comma = text_.substr(end, 1) == ",";
    if (comma) ++end;
    const bool most = comma && skip_digits();
    if (text_.substr(end, 1) == "}" && (least || most)) {
      if (!least) unsupported("a repetition {,n}");
      if (text_.substr(end + 1, 1) == "+") unsupported("a + after a repetition {n,m}");
    }
    out_ += text_[at_++];
  }

  // A backslash and what belongs to it.
  void escape(bool in_class) {
    if (at_ + 1 >= text_.size()) unsupported("a backslash at its end");
    const char name = text_[at_ + 1];
    for (const CharacterType& type : kTypes) {
      const char capital = static_cast<char>(type.name - 'a' + 'A');
      if (name != type.name && name != capital) continue;
      const bool complement = name == capital;
      if (!in_class) {
        out_.append(complement ? "[^" : "[").append(type.in);
        if (type.name == 'w') out_.append(kWordAlone);
        out_ += ']';
      } else if (!complement) {
        out_.append(type.in);
      } else if (type.out.empty()) {
        unsupported("\\W inside a character class");
      } else {
        out_.append(type.out);
      }
      at_ += 2;
      return;
    }
    if ((name == 'b' || name == 'B') && !in_class) {
      const std::string word = "[" + std::string(kWord).append(kWordAlone) + "]";
      const std::string begins = "(?<!" + word + ")(?=" + word + ")";
      const std::string ends = "(?<=" + word + ")(?!" + word + ")";
      const std::string within = "(?<=" + word + ")(?=" + word + ")";
      const std::string outside = "(?<!" + word + ")(?!" + word + ")";
      out_ +=
          name == 'b' ? "(?:" + begins + "|" + ends + ")" : "(?:" + within + "|" + outside + ")";
      at_ += 2;
      return;
    }
    if ((name == 'p' || name == 'P') && text_.substr(at_ + 2, 1) == "{") return property();
    // \Q quotes in PCRE2 and is a plain Q in Ruby; \X, \R and the like agree or do not compile.
    if (name == 'Q' || name == 'E') unsupported("\\Q or \\E");
    // \x{41} is no repetition.
    const size_t end =
        name == 'x' && text_.substr(at_ + 2, 1) == "{" ? text_.find('}', at_) : at_ + 1;
    if (end == std::string_view::npos) unsupported("\\x{ without end");
    out_.append(text_.substr(at_, end + 1 - at_));
    at_ = end + 1;
  }

  // \p{Han} is the script itself, which for PCRE2 would be everything that is used with it.
  void property() {
    const size_t end = text_.find('}', at_);
    if (end == std::string_view::npos) unsupported("a property without end");
    std::string_view name = text_.substr(at_ + 3, end - at_ - 3);
    out_.append(text_.substr(at_, 3));
    if (name.starts_with('^')) {
      out_ += '^';
      name.remove_prefix(1);
    }
    if (is_script(name)) out_ += "sc:";
    out_.append(name).append("}");
    at_ = end + 1;
  }

  // Classes like [:alpha:] inside a character class, where both agree on them.
  void posix_class() {
    const size_t end = text_.find(":]", at_);
    if (end == std::string_view::npos) unsupported("a character class inside another");
    const std::string_view name = text_.substr(at_ + 2, end - at_ - 2);
    if (name == "space") {
      out_.append(kSpace);
    } else if (name == "word") {
      out_.append(kWord);
    } else if (name == "digit") {
      out_ += "\\p{Nd}";
    } else if (name == "xdigit") {
      out_.append(kHex);
    } else {
      unsupported("a POSIX class other than space, word, digit and xdigit");
    }
    at_ = end + 2;
  }

  void character_class() {
    out_ += text_[at_++];
    if (at_ < text_.size() && text_[at_] == '^') out_ += text_[at_++];
    // A bracket that comes first is a member.
    if (at_ < text_.size() && text_[at_] == ']') {
      out_ += "\\]";
      ++at_;
    }
    while (at_ < text_.size() && text_[at_] != ']') {
      if (text_[at_] == '\\') {
        escape(true);
      } else if (text_.substr(at_, 2) == "[:") {
        posix_class();
      } else if (text_[at_] == '[') {
        unsupported("a character class inside another");
      } else if (text_.substr(at_, 2) == "&&") {
        unsupported("an intersection of character classes");
      } else {
        out_ += text_[at_++];
      }
    }
    if (at_ >= text_.size()) unsupported("a character class without end");
    out_ += ']';
    ++at_;
  }

  std::string_view text_;
  const std::string& where_;
  std::string out_;
  size_t at_ = 0;
};

}  // namespace

std::string translate_oniguruma(std::string_view pattern, const std::string& where) {
  return Translator(pattern, where).run();
}

}  // namespace sol
