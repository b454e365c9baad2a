// Sequences whose beginnings later requests may share: keys and values of a prompt are computed
// once for all that begin alike.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <span>
#include <vector>

#include "sol/frozen_model.h"

namespace sol {

class PrefixCache {
 public:
  // `model` must outlive it. Shorter common beginnings than `shortest` are not worth a fork.
  explicit PrefixCache(FrozenModel& model, int shortest = 16)
      : model_(model), shortest_(shortest) {}

  // How many first tokens of `prompt` an entry has, `most` at most; 0 where it is not worth it.
  int match(std::span<const int32_t> prompt, int most) const;
  // A sequence that holds the first match(prompt, most) tokens; null where that is 0.
  std::unique_ptr<Sequence> share(std::span<const int32_t> prompt, int most);

  // Keeps the sequence, which holds `tokens` computed densely. Replaces entries that it covers; one
  // that covers it is used again instead.
  void add(std::span<const int32_t> tokens, std::unique_ptr<Sequence> sequence);

  // Forgets the entries used longest ago until they hold at most so many tokens.
  void shrink_to(int64_t tokens);
  // Tokens of all entries; what they share counts for each.
  int64_t tokens() const { return tokens_; }
  size_t entries() const { return entries_.size(); }

 private:
  struct Entry {
    std::vector<int32_t> tokens;
    std::unique_ptr<Sequence> sequence;
  };
  using Entries = std::list<Entry>;
  Entries::const_iterator best(std::span<const int32_t> prompt, int most, int& length) const;
  void erase(Entries::const_iterator entry);

  FrozenModel& model_;
  int shortest_;
  Entries entries_;  // last used first
  int64_t tokens_ = 0;
};

// How many first tokens two texts have in common.
int common_prefix(std::span<const int32_t> a, std::span<const int32_t> b);

}  // namespace sol
