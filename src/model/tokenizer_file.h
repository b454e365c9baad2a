// tokenizer.json as data: the vocabulary and merges streamed into flat lists (a DOM of 128,000
// pieces is slow), all the rest as a small JSON document read strictly.
#pragma once

#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace sol {

// A node of the document and what messages call it, as "x/tokenizer.json: decoder.decoders[2]".
class Component {
 public:
  Component(const nlohmann::json& node, std::string where)
      : node_(&node), where_(std::move(where)) {}

  const std::string& where() const { return where_; }
  bool is_null() const { return node_->is_null(); }
  bool is_text() const { return node_->is_string(); }
  bool is_zero_or_null() const { return is_null() || (node_->is_number() && *node_ == 0); }
  bool has(const char* field) const { return node_->is_object() && node_->contains(field); }

  // Each throws Error naming the component and the field when it is missing or of another kind.
  std::string type() const;  // the field "type"; an object without it is an error
  Component child(const char* field) const;
  std::vector<Component> items() const;  // of a list
  std::vector<Component> list(const char* field) const { return child(field).items(); }
  std::vector<std::pair<std::string, Component>> members(const char* field) const;
  std::string text(const char* field) const;
  bool flag(const char* field) const;
  int64_t integer(const char* field) const;
  int64_t as_integer() const;
  std::string as_text() const;
  // A missing field gives the fallback; null does too.
  bool flag_or(const char* field, bool fallback) const;
  std::string text_or(const char* field, const std::string& fallback) const;

  // A field that nobody knows would be a setting that is ignored: an Error that names it.
  void allow_only(std::initializer_list<const char*> fields) const;
  [[noreturn]] void unknown_type() const;

 private:
  const nlohmann::json& require(const char* field) const;
  std::string at(const char* field) const;

  const nlohmann::json* node_;
  std::string where_;
};

struct TokenizerFile {
  struct Piece {
    std::string text;
    int64_t id;
  };
  struct Merge {
    std::string text;  // both parts together
    size_t left;       // bytes of the first part
  };

  std::filesystem::path path;
  std::string fingerprint;  // of the text that was read
  nlohmann::json document;  // all but model.vocab and model.merges
  std::vector<Piece> vocabulary;
  std::vector<Merge> merges;  // by rank
  bool has_vocabulary = false, has_merges = false;

  // Throws Error naming the file, and byte or field, for anything that is not such a file.
  static TokenizerFile read(const std::filesystem::path& path);
  static TokenizerFile parse(std::string_view text, const std::filesystem::path& path);

  Component component(const char* field) const;  // of the document; null where it is missing
};

}  // namespace sol
