// Files of llama2.c made for the tests.
#pragma once

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "base/random.h"

namespace sol::test {

template <typename T>
void append_bytes(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

struct Llama2cHeader {
  int32_t dim = 32, hidden = 24, layers = 2, heads = 4, kv_heads = 2, vocab = 270, length = 16;
};

// Weights by a fixed seed, in the file's order; rotary tables are zero, as they are skipped.
inline std::string llama2c_checkpoint(const Llama2cHeader& h = {}) {
  std::string out;
  for (const int32_t field : {h.dim, h.hidden, h.layers, h.heads, h.kv_heads, h.vocab, h.length})
    append_bytes(out, field);
  Random random({.seed = 11});
  const auto fill = [&](int64_t n, double mean, double deviation) {
    for (int64_t i = 0; i < n; ++i)
      append_bytes(out, static_cast<float>(mean + deviation * random.normal()));
  };
  const int64_t d = h.dim, kv = d / h.heads * h.kv_heads, vocab = std::abs(h.vocab);
  fill(vocab * d, 0, 0.5);
  fill(h.layers * d, 1, 0.1);       // attention norms
  fill(h.layers * d * d, 0, 0.2);   // queries
  fill(h.layers * kv * d, 0, 0.2);  // keys
  fill(h.layers * kv * d, 0, 0.2);  // values
  fill(h.layers * d * d, 0, 0.2);   // outputs
  fill(h.layers * d, 1, 0.1);       // MLP norms
  fill(3 * h.layers * d * h.hidden, 0, 0.2);
  fill(d, 1, 0.1);
  out.append(static_cast<size_t>(h.length * d / h.heads) * 4, '\0');
  if (h.vocab < 0) fill(vocab * d, 0, 0.5);
  return out;
}

struct Llama2cPiece {
  float score;
  std::string text;
};

// Eleven pieces after the special and the byte pieces.
inline std::vector<Llama2cPiece> llama2c_pieces() {
  std::vector<Llama2cPiece> out{{0, "<unk>"}, {0, "\n<s>\n"}, {0, "\n</s>\n"}};
  constexpr const char* digits = "0123456789ABCDEF";
  for (int i = 0; i < 256; ++i)
    out.push_back({0, std::string("<0x") + digits[i / 16] + digits[i % 16] + ">"});
  float score = 0;
  for (const char* text :
       {" a", "ab", "ba", "bab", " ", "a", "b", "c", "\xC3\xA9", "abab", " abab"})
    out.push_back({score--, text});
  return out;
}

inline std::string llama2c_tokenizer(const std::vector<Llama2cPiece>& pieces) {
  std::string out;
  append_bytes(out, int32_t{6});
  for (const Llama2cPiece& piece : pieces) {
    append_bytes(out, piece.score);
    append_bytes(out, static_cast<int32_t>(piece.text.size()));
    out += piece.text;
  }
  return out;
}

// llama2.c's encode() as its run.c describes it, without begin token: a space, the characters or
// their bytes, then the best pair, the leftmost of equals, until there is none.
inline std::vector<int32_t> llama2c_encode(const std::vector<Llama2cPiece>& pieces,
                                           const std::string& text) {
  const auto find = [&](const std::string& piece) {
    for (size_t i = 0; i < pieces.size(); ++i)
      if (pieces[i].text == piece) return static_cast<int32_t>(i);
    return -1;
  };
  std::vector<int32_t> ids;
  if (text.empty()) return ids;
  ids.push_back(find(" "));
  for (size_t at = 0; at < text.size();) {
    size_t n = 1;
    while (at + n < text.size() && (static_cast<unsigned char>(text[at + n]) & 0xC0) == 0x80) ++n;
    const int32_t id = find(text.substr(at, n));
    if (id >= 0) ids.push_back(id);
    for (size_t i = 0; id < 0 && i < n; ++i)
      ids.push_back(static_cast<unsigned char>(text[at + i]) + 3);
    at += n;
  }
  for (;;) {
    float best = -1e10f;
    size_t place = 0;
    int32_t joint = -1;
    for (size_t i = 0; i + 1 < ids.size(); ++i) {
      const int32_t id = find(pieces[static_cast<size_t>(ids[i])].text +
                              pieces[static_cast<size_t>(ids[i + 1])].text);
      if (id < 0 || pieces[static_cast<size_t>(id)].score <= best) continue;
      best = pieces[static_cast<size_t>(id)].score;
      place = i;
      joint = id;
    }
    if (joint < 0) return ids;
    ids[place] = joint;
    ids.erase(ids.begin() + static_cast<std::ptrdiff_t>(place) + 1);
  }
}

}  // namespace sol::test
