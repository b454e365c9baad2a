#include "model/jinja_lexer.h"

#include <algorithm>
#include <array>

#include "base/fail.h"
#include "model/python_text.h"
#include "model/utf8.h"

namespace sol::jinja {
namespace {

bool is_name_start(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

constexpr std::array<std::string_view, 29> marks{
    "//", "**", "==", "!=", "<=", ">=", "+", "-", "*", "/", "%", "~", "<", ">", "=",
    "(",  ")",  "[",  "]",  "{",  "}",  "|", ".", ",", ":", ";", "!", "&", "@"};

class Lexer {
 public:
  Lexer(std::string_view source, const std::string& where) : where_(where) {
    // As Jinja: one kind of newline, none at the end.
    source_ = replace_text(replace_text(source, "\r\n", "\n"), "\r", "\n");
    if (source_.ends_with('\n')) source_.pop_back();
  }

  std::vector<Token> run() {
    while (at_ < source_.size()) {
      const size_t tag = next_tag(at_);
      const bool tag_found = tag != std::string::npos;
      text(tag_found ? tag : source_.size(), tag_found ? source_[tag + 1] : '\0',
           tag_found && tag + 2 < source_.size() ? source_[tag + 2] : '\0');
      if (!tag_found) break;
      const char kind = source_[tag + 1];
      const char sign = tag + 2 < source_.size() ? source_[tag + 2] : '\0';
      at_ = tag + 2 + (sign == '-' || sign == '+' ? 1 : 0);
      if (kind == '#')
        comment();
      else
        inside(kind);
    }
    add(Token::Kind::end, "");
    return std::move(tokens_);
  }

 private:
  [[noreturn]] void error(const std::string& what) const {
    fail("{}: line {}: {}", where_, line_, what);
  }

  void add(Token::Kind kind, std::string text) {
    tokens_.push_back({kind, std::move(text), line_});
  }

  void advance(size_t to) {
    line_ += static_cast<int>(std::count(source_.begin() + static_cast<std::ptrdiff_t>(at_),
                                         source_.begin() + static_cast<std::ptrdiff_t>(to), '\n'));
    at_ = to;
  }

  size_t next_tag(size_t from) const {
    for (size_t tag = from; (tag = source_.find('{', tag)) != std::string::npos; ++tag)
      if (tag + 1 < source_.size() &&
          (source_[tag + 1] == '{' || source_[tag + 1] == '%' || source_[tag + 1] == '#'))
        return tag;
    return std::string::npos;
  }

  // Text up to `end`, where a tag {kind begins with this sign.
  void text(size_t end, char kind, char sign) {
    std::string_view content = std::string_view(source_).substr(at_, end - at_);
    if (sign == '-') {
      content = right_strip(content);
    } else if (sign != '+' && (kind == '%' || kind == '#')) {
      const size_t newline = content.rfind('\n');
      const size_t start = newline == std::string_view::npos ? 0 : newline + 1;
      if ((start > 0 || line_start_) && strip(content.substr(start)).empty())
        content = content.substr(0, start);
    }
    if (!content.empty()) add(Token::Kind::text, std::string(content));
    advance(end);
  }

  // After a tag: "-" takes all white space that follows, a block takes one newline.
  void after_tag(bool minus, bool block, bool plus) {
    size_t end = at_;
    if (minus)
      end = source_.size() - left_strip(std::string_view(source_).substr(at_)).size();
    else if (block && !plus && at_ < source_.size() && source_[at_] == '\n')
      end = at_ + 1;
    line_start_ = end > at_ && source_[end - 1] == '\n';
    advance(end);
  }

  void comment() {
    const size_t end = source_.find("#}", at_);
    if (end == std::string::npos) error("a comment {# is not closed");
    const bool minus = end > at_ && source_[end - 1] == '-';
    const bool plus = end > at_ && source_[end - 1] == '+';
    advance(end + 2);
    after_tag(minus, true, plus);
  }

  void inside(char kind) {
    const bool block = kind == '%';
    const std::string_view close = block ? "%}" : "}}";
    add(block ? Token::Kind::statement_begin : Token::Kind::expression_begin, "");
    const int opened = line_;
    int depth = 0;  // of mappings: "}}" may close two of them
    while (true) {
      advance(source_.size() - left_strip(std::string_view(source_).substr(at_)).size());
      const std::string_view rest = std::string_view(source_).substr(at_);
      if (rest.empty()) fail("{}: line {}: a tag is not closed by {}", where_, opened, close);
      const bool signed_close =
          (rest[0] == '-' || rest[0] == '+') && rest.substr(1).starts_with(close);
      if (signed_close || (rest.starts_with(close) && (block || depth == 0))) {
        add(block ? Token::Kind::statement_end : Token::Kind::expression_end, "");
        const char sign = signed_close ? rest[0] : '\0';
        at_ += close.size() + (signed_close ? 1 : 0);
        after_tag(sign == '-', block, sign == '+');
        return;
      }
      token(rest, depth);
    }
  }

  void token(std::string_view rest, int& depth) {
    const char c = rest[0];
    size_t length = 1;
    if (is_name_start(c)) {
      while (length < rest.size() && (is_name_start(rest[length]) || is_digit(rest[length])))
        ++length;
      add(Token::Kind::name, std::string(rest.substr(0, length)));
    } else if (is_digit(c)) {
      bool point = false;
      while (length < rest.size() &&
             (is_digit(rest[length]) || (rest[length] == '.' && !point &&
                                         length + 1 < rest.size() && is_digit(rest[length + 1])))) {
        point = point || rest[length] == '.';
        ++length;
      }
      if (length > 18) error("a number has too many digits");
      add(point ? Token::Kind::floating : Token::Kind::integer,
          std::string(rest.substr(0, length)));
    } else if (c == '\'' || c == '"') {
      length = string(rest);
    } else {
      const auto found = std::ranges::find_if(marks, [&](auto m) { return rest.starts_with(m); });
      if (found == marks.end()) error(fmt::format("unexpected character '{}'", c));
      length = found->size();
      if (c == '{') ++depth;
      if (c == '}') --depth;
      add(Token::Kind::mark, std::string(*found));
    }
    advance(at_ + length);
  }

  // The string literal at the beginning of `rest`, with Python's escapes. Returns its length.
  size_t string(std::string_view rest) {
    const char quote = rest[0];
    std::string text;
    size_t i = 1;
    for (; i < rest.size() && rest[i] != quote; ++i) {
      if (rest[i] != '\\') {
        text += rest[i];
        continue;
      }
      if (++i == rest.size()) break;
      i += escape(rest.substr(i), text);
    }
    if (i >= rest.size()) error("a string is not closed");
    add(Token::Kind::string, std::move(text));
    return i + 1;
  }

  // What follows a backslash; returns how many characters after the first it took.
  size_t escape(std::string_view rest, std::string& out) const {
    constexpr std::string_view letters = "ntrabfv\\'\"", values = "\n\t\r\a\b\f\v\\'\"";
    if (const size_t known = letters.find(rest[0]); known != std::string_view::npos) {
      out += values[known];
      return 0;
    }
    if (rest[0] == '\n') return 0;  // a line goes on
    const size_t digits = rest[0] == 'x' ? 2 : rest[0] == 'u' ? 4 : rest[0] == 'U' ? 8 : 0;
    if (digits == 0) {
      if (is_digit(rest[0])) error("octal escapes in strings are not supported");
      out += {'\\', rest[0]};  // as Python leaves unknown ones
      return 0;
    }
    char32_t code_point = 0;
    for (size_t i = 1; i <= digits; ++i) {
      const char c = i < rest.size() ? rest[i] : '\0';
      const int value = is_digit(c)            ? c - '0'
                        : c >= 'a' && c <= 'f' ? c - 'a' + 10
                        : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                               : -1;
      if (value < 0) error(fmt::format("\\{} needs {} hexadecimal digits", rest[0], digits));
      code_point = code_point * 16 + static_cast<char32_t>(value);
    }
    if (code_point > 0x10FFFF || (code_point >= 0xD800 && code_point < 0xE000))
      error(fmt::format("\\{} names no character", rest[0]));
    append_utf8(code_point, out);
    return digits;
  }

  std::string source_;
  const std::string& where_;
  std::vector<Token> tokens_;
  size_t at_ = 0;
  int line_ = 1;
  bool line_start_ = true;  // what comes next begins a line
};

}  // namespace

std::vector<Token> tokenise(std::string_view source, const std::string& where) {
  return Lexer(source, where).run();
}

}  // namespace sol::jinja
