#include "model/added_tokens.h"

#include <algorithm>

#include "base/fail.h"
#include "model/character_class.h"
#include "model/utf8.h"

namespace sol {
namespace {

// The start of the character that ends at `end`, which must be greater than 0.
size_t previous_character(std::string_view text, size_t end) {
  do --end;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80);
  return end;
}

bool is_word_at(std::string_view text, size_t at) {
  return at < text.size() && is_word(next_code_point(text, at));
}

bool is_word_before(std::string_view text, size_t end) {
  return end > 0 && is_word_at(text, previous_character(text, end));
}

size_t skip_spaces_back(std::string_view text, size_t end) {
  while (end > 0) {
    const size_t begin = previous_character(text, end);
    size_t at = begin;
    if (!is_space(next_code_point(text, at))) break;
    end = begin;
  }
  return end;
}

size_t skip_spaces(std::string_view text, size_t at) {
  for (size_t next = at; next < text.size(); at = next) {
    if (!is_space(next_code_point(text, next))) break;
  }
  return at;
}

AddedToken parse_token(const Component& component, const Vocabulary& vocabulary) {
  component.allow_only(
      {"id", "content", "single_word", "lstrip", "rstrip", "normalized", "special"});
  const int64_t id = component.integer("id");
  AddedToken token{0,
                   component.text("content"),
                   component.flag("single_word"),
                   component.flag("lstrip"),
                   component.flag("rstrip"),
                   component.flag("normalized"),
                   component.flag("special")};
  const std::string& where = component.where();
  if (token.content.empty()) fail("{}: the content is empty", where);
  if (id < 0 || id > Vocabulary::kMaxId) {
    fail("{}: the id {} of \"{}\" is out of range (0 to {})", where, id, token.content,
         Vocabulary::kMaxId);
  }
  token.id = static_cast<int32_t>(id);
  const int32_t in_vocabulary = vocabulary.find(token.content);
  if (in_vocabulary >= 0 && in_vocabulary != token.id) {
    fail("{}: \"{}\" has the id {} here and {} in the vocabulary", where, token.content, id,
         in_vocabulary);
  }
  if (in_vocabulary < 0 && vocabulary.has(id)) {
    fail("{}: the id {} of \"{}\" belongs to \"{}\" in the vocabulary", where, id, token.content,
         vocabulary.piece(token.id));
  }
  return token;
}

}  // namespace

void AddedTokenMatcher::add(std::string_view pattern, const AddedToken& token) {
  if (pattern.empty()) return;
  begins_[static_cast<unsigned char>(pattern[0])] = true;
  uint32_t node = 0;
  for (const char c : pattern) {
    const auto& children = nodes_[node].children;
    const auto child = std::find_if(children.begin(), children.end(),
                                    [&](const auto& entry) { return entry.first == c; });
    if (child != children.end()) {
      node = child->second;
      continue;
    }
    const auto added = static_cast<uint32_t>(nodes_.size());
    nodes_[node].children.emplace_back(c, added);
    nodes_.emplace_back();
    node = added;
  }
  if (!nodes_[node].token) nodes_[node].token = &token;
}

std::pair<const AddedToken*, size_t> AddedTokenMatcher::longest_at(std::string_view text,
                                                                   size_t at) const {
  std::pair<const AddedToken*, size_t> longest{nullptr, at};
  uint32_t node = 0;
  while (at < text.size()) {
    const auto& children = nodes_[node].children;
    const auto child = std::find_if(children.begin(), children.end(),
                                    [&](const auto& entry) { return entry.first == text[at]; });
    if (child == children.end()) break;
    node = child->second;
    ++at;
    if (nodes_[node].token) longest = {nodes_[node].token, at};
  }
  return longest;
}

void AddedTokenMatcher::find(std::string_view text, bool skip_special,
                             std::vector<Found>& found) const {
  found.clear();
  if (empty()) return;
  size_t taken = 0;  // end of the last token, its spaces included
  for (size_t at = 0; at < text.size();) {
    if (!begins_[static_cast<unsigned char>(text[at])]) {
      ++at;
      continue;
    }
    const auto [token, end] = longest_at(text, at);
    if (!token) {
      ++at;
      continue;
    }
    Found place{at, end, token};
    at = end;  // even where the match is not taken, nothing else is looked for inside it
    if (skip_special && token->special) continue;
    if (token->single_word && (is_word_before(text, place.begin) || is_word_at(text, place.end))) {
      continue;
    }
    if (token->lstrip) place.begin = std::max(skip_spaces_back(text, place.begin), taken);
    if (token->rstrip) place.end = skip_spaces(text, place.end);
    taken = place.end;
    found.push_back(place);
  }
}

AddedTokens::AddedTokens(const Component& list, const Vocabulary& vocabulary,
                         const Normalizer& normalizer) {
  const std::vector<Component> components =
      list.is_null() ? std::vector<Component>() : list.items();
  tokens_.reserve(components.size());
  for (const Component& component : components) {
    tokens_.push_back(parse_token(component, vocabulary));
    const AddedToken& token = tokens_.back();
    const size_t index = tokens_.size() - 1;
    if (!by_id_.emplace(token.id, index).second) {
      fail("{}: \"{}\" and \"{}\" have the same id {}", component.where(),
           tokens_[by_id_.at(token.id)].content, token.content, token.id);
    }
    if (!by_content_.emplace(token.content, index).second) {
      fail("{}: \"{}\" is there twice", component.where(), token.content);
    }
    id_limit_ = std::max(id_limit_, token.id + 1);
  }
  MatchScratch scratch;
  // Special tokens come first: of two with one pattern the special one is found.
  for (const bool special : {true, false}) {
    for (const AddedToken& token : tokens_) {
      if (token.special != special) continue;
      if (token.normalized) {
        normalized_.add(normalizer.apply(token.content, scratch), token);
      } else {
        plain_.add(token.content, token);
      }
    }
  }
}

const AddedToken* AddedTokens::by_id(int32_t id) const {
  const auto found = by_id_.find(id);
  return found == by_id_.end() ? nullptr : &tokens_[found->second];
}

const AddedToken* AddedTokens::by_content(std::string_view content) const {
  const auto found = by_content_.find(content);
  return found == by_content_.end() ? nullptr : &tokens_[found->second];
}

}  // namespace sol
