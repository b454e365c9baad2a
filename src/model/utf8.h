// UTF-8: code points, validation and the replacement of what is broken.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace sol {

inline constexpr std::string_view kReplacementCharacter = "\xEF\xBF\xBD";  // U+FFFD

// Length of the longest prefix that is valid UTF-8.
size_t valid_utf8_prefix(std::string_view text);
inline bool is_valid_utf8(std::string_view text) {
  return valid_utf8_prefix(text) == text.size();
}

// Appends `text` with every maximal broken part replaced by one U+FFFD (Unicode 3.9, "substitution
// of maximal subparts"; what Rust's String::from_utf8_lossy does).
void append_lossy_utf8(std::string_view text, std::string& out);

// Appends the code point's bytes. It must be a Unicode scalar value.
void append_utf8(char32_t code_point, std::string& out);

// The code point at `at`, which is advanced past it. The text must be valid UTF-8 and `at` inside
// it.
char32_t next_code_point(std::string_view text, size_t& at);

// Number of bytes of the character that this lead byte begins (1 for a continuation byte).
inline size_t utf8_length(char lead) {
  const auto byte = static_cast<unsigned char>(lead);
  return byte < 0xC0 ? 1 : byte < 0xE0 ? 2 : byte < 0xF0 ? 3 : 4;
}

// Bytes that arrive in any portions; what comes out is always whole characters, and all of it
// together equals append_lossy_utf8 of all that went in.
class LossyUtf8Stream {
 public:
  void push(std::string_view bytes, std::string& out);
  void finish(std::string& out);

 private:
  std::string pending_;  // the beginning of a character whose rest may still come
};

}  // namespace sol
