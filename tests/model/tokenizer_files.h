// Tokenizers made on the spot, for the tests.
#pragma once

#include <cstdint>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/file_io.h"
#include "sol/error.h"
#include "sol/tokenizer.h"
#include "support.h"

namespace sol::test {

// A character-level tokenizer that is as small as it can be: a, b, c, "ab", "abc" and two added
// tokens.
inline nlohmann::json small_tokenizer() {
  return nlohmann::json::parse(R"({
    "version": "1.0", "truncation": null, "padding": null,
    "added_tokens": [
      {"id": 6, "content": "<s>", "single_word": false, "lstrip": false, "rstrip": false,
       "normalized": false, "special": true},
      {"id": 7, "content": "<x>", "single_word": false, "lstrip": false, "rstrip": false,
       "normalized": false, "special": false}],
    "normalizer": null, "pre_tokenizer": null, "post_processor": null,
    "decoder": {"type": "Fuse"},
    "model": {"type": "BPE", "dropout": null, "unk_token": "?", "continuing_subword_prefix": null,
      "end_of_word_suffix": null, "fuse_unk": false, "byte_fallback": false,
      "vocab": {"?": 0, "a": 1, "b": 2, "c": 3, "ab": 4, "abc": 5},
      "merges": ["a b", "ab c"]}})");
}

inline std::shared_ptr<const Tokenizer> load_text(const std::string& tokenizer,
                                                  const std::string& config = "") {
  const TemporaryDirectory dir;
  std::ofstream(dir.path() / "tokenizer.json") << tokenizer;
  if (!config.empty()) std::ofstream(dir.path() / "tokenizer_config.json") << config;
  return Tokenizer::load(dir.path());
}

inline std::shared_ptr<const Tokenizer> load_made(const nlohmann::json& tokenizer) {
  return load_text(tokenizer.dump());
}

// The lines of a .jsonl file.
inline std::vector<nlohmann::json> read_lines(const std::filesystem::path& path) {
  std::vector<nlohmann::json> lines;
  const std::string text = read_file(path);
  for (size_t at = 0; at < text.size();) {
    const size_t end = text.find('\n', at);
    lines.push_back(nlohmann::json::parse(text.substr(at, end - at)));
    if (end == std::string::npos) break;
    at = end + 1;
  }
  return lines;
}

inline std::string decode_by_stream(const Tokenizer& tokenizer, const std::vector<int32_t>& ids,
                                    bool skip_special) {
  const auto stream = tokenizer.stream(skip_special);
  std::string text;
  for (const int32_t id : ids) text += stream->push(id);
  return text + stream->finish();
}

// A case of cases.jsonl; see tests/data/tokenizers/README.md.
inline void check_case(const Tokenizer& tokenizer, const nlohmann::json& expected) {
  using Ids = std::vector<int32_t>;
  if (expected.contains("text")) {
    const auto text = expected["text"].get<std::string>();
    EXPECT_EQ(tokenizer.encode(text), expected["ids"].get<Ids>()) << expected["text"];
    EXPECT_EQ(tokenizer.encode(text, {.add_special_tokens = false}), expected["plain"].get<Ids>())
        << expected["text"];
    return;
  }
  const auto ids = expected["ids"].get<Ids>();
  for (const bool skip : {false, true}) {
    const auto text = expected[skip ? "skipped" : "decoded"].get<std::string>();
    EXPECT_EQ(tokenizer.decode(ids, skip), text) << expected;
    EXPECT_EQ(decode_by_stream(tokenizer, ids, skip), text) << expected;
  }
}

}  // namespace sol::test
