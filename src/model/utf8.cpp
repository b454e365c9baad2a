#include "model/utf8.h"

#include <cstring>

namespace sol {
namespace {

enum class Sequence { valid, broken, incomplete };

// Looks at the character that begins at `text[0]`. `length` becomes its bytes, or those of the
// maximal part to replace (Unicode table 3-7: the second byte's range depends on the first).
Sequence examine(std::string_view text, size_t& length) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned lead = byte(0);
  length = 1;
  if (lead < 0x80) return Sequence::valid;
  if (lead < 0xC2 || lead > 0xF4) return Sequence::broken;
  unsigned low = 0x80, high = 0xBF;
  if (lead == 0xE0) low = 0xA0;
  if (lead == 0xED) high = 0x9F;
  if (lead == 0xF0) low = 0x90;
  if (lead == 0xF4) high = 0x8F;
  const size_t expected = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  for (; length < expected; ++length, low = 0x80, high = 0xBF) {
    if (length == text.size()) return Sequence::incomplete;
    if (byte(length) < low || byte(length) > high) return Sequence::broken;
  }
  return Sequence::valid;
}

}  // namespace

size_t valid_utf8_prefix(std::string_view text) {
  size_t at = 0;
  while (at < text.size()) {
    if (at + 8 <= text.size()) {
      uint64_t word;
      std::memcpy(&word, text.data() + at, 8);
      if ((word & 0x8080808080808080u) == 0) {
        at += 8;
        continue;
      }
    }
    size_t length;
    if (examine(text.substr(at), length) != Sequence::valid) return at;
    at += length;
  }
  return at;
}

void append_lossy_utf8(std::string_view text, std::string& out) {
  while (!text.empty()) {
    const size_t valid = valid_utf8_prefix(text);
    out.append(text.substr(0, valid));
    text.remove_prefix(valid);
    if (text.empty()) return;
    size_t broken;
    examine(text, broken);
    out.append(kReplacementCharacter);
    text.remove_prefix(broken);
  }
}

void append_utf8(char32_t c, std::string& out) {
  const auto put = [&](char32_t byte) { out.push_back(static_cast<char>(byte)); };
  if (c < 0x80) {
    put(c);
  } else if (c < 0x800) {
    put(0xC0 | (c >> 6));
    put(0x80 | (c & 0x3F));
  } else if (c < 0x10000) {
    put(0xE0 | (c >> 12));
    put(0x80 | ((c >> 6) & 0x3F));
    put(0x80 | (c & 0x3F));
  } else {
    put(0xF0 | (c >> 18));
    put(0x80 | ((c >> 12) & 0x3F));
    put(0x80 | ((c >> 6) & 0x3F));
    put(0x80 | (c & 0x3F));
  }
}

char32_t next_code_point(std::string_view text, size_t& at) {
  const auto byte = [&](size_t i) -> char32_t { return static_cast<unsigned char>(text[i]); };
  const size_t i = at;
  const char32_t lead = byte(i);
  at += utf8_length(text[i]);
  if (lead < 0x80) return lead;
  if (lead < 0xE0) return (lead & 0x1F) << 6 | (byte(i + 1) & 0x3F);
  if (lead < 0xF0) return (lead & 0x0F) << 12 | (byte(i + 1) & 0x3F) << 6 | (byte(i + 2) & 0x3F);
  return (lead & 0x07) << 18 | (byte(i + 1) & 0x3F) << 12 | (byte(i + 2) & 0x3F) << 6 |
         (byte(i + 3) & 0x3F);
}

void LossyUtf8Stream::push(std::string_view bytes, std::string& out) {
  pending_.append(bytes);
  // Only the last three bytes can be the beginning of an unfinished character.
  size_t ready = pending_.size();
  for (size_t back = 1; back <= 3 && back <= pending_.size(); ++back) {
    const size_t at = pending_.size() - back;
    size_t length;
    const auto byte = static_cast<unsigned char>(pending_[at]);
    if (byte >= 0x80 && byte < 0xC0) continue;
    if (examine(std::string_view(pending_).substr(at), length) == Sequence::incomplete) ready = at;
    break;
  }
  append_lossy_utf8(std::string_view(pending_).substr(0, ready), out);
  pending_.erase(0, ready);
}

void LossyUtf8Stream::finish(std::string& out) {
  append_lossy_utf8(pending_, out);
  pending_.clear();
}

}  // namespace sol
