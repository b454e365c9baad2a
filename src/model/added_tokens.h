// Tokens that stand beside the model's vocabulary ("<|eot_id|>") and are found in a text before
// anything else happens to it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "model/normalizer.h"
#include "model/tokenizer_file.h"
#include "model/vocabulary.h"

namespace sol {

struct AddedToken {
  int32_t id;
  std::string content;
  bool single_word, lstrip, rstrip, normalized, special;
};

// Finds the tokens in a text: at every place the longest one, from left to right.
class AddedTokenMatcher {
 public:
  // Where a token was found, with the spaces that it takes along.
  struct Found {
    size_t begin, end;
    const AddedToken* token;
  };

  // Of equal patterns the first counts; an empty one is never found.
  void add(std::string_view pattern, const AddedToken& token);
  // `skip_special`: special tokens' places are passed over.
  void find(std::string_view text, bool skip_special, std::vector<Found>& found) const;
  bool empty() const { return nodes_.size() == 1; }

 private:
  struct Node {
    const AddedToken* token = nullptr;
    std::vector<std::pair<char, uint32_t>> children;
  };
  std::pair<const AddedToken*, size_t> longest_at(std::string_view text, size_t at) const;

  std::vector<Node> nodes_ = std::vector<Node>(1);
  bool begins_[256] = {};  // bytes that a pattern begins with
};

class AddedTokens {
 public:
  // From the list "added_tokens". Throws Error naming the token whose id is out of range, belongs
  // to something else or is not the one that the vocabulary gives it.
  AddedTokens(const Component& list, const Vocabulary& vocabulary, const Normalizer& normalizer);
  AddedTokens(const AddedTokens&) = delete;  // the matchers point to the tokens
  AddedTokens& operator=(const AddedTokens&) = delete;

  const AddedToken* by_id(int32_t id) const;  // null: none
  const AddedToken* by_content(std::string_view content) const;
  size_t count() const { return tokens_.size(); }
  int32_t id_limit() const { return id_limit_; }  // largest id + 1, 0 for no tokens

  const AddedTokenMatcher& before_normalizing() const { return plain_; }
  const AddedTokenMatcher& after_normalizing() const { return normalized_; }

 private:
  std::vector<AddedToken> tokens_;
  std::unordered_map<int32_t, size_t> by_id_;
  std::unordered_map<std::string_view, size_t> by_content_;
  AddedTokenMatcher plain_, normalized_;
  int32_t id_limit_ = 0;
};

}  // namespace sol
