#include "serving/prefix_cache.h"

#include <algorithm>

namespace sol {

int common_prefix(std::span<const int32_t> a, std::span<const int32_t> b) {
  return static_cast<int>(std::ranges::mismatch(a, b).in1 - a.begin());
}

PrefixCache::Entries::const_iterator PrefixCache::best(std::span<const int32_t> prompt, int most,
                                                       int& length) const {
  auto found = entries_.end();
  length = 0;
  for (auto entry = entries_.begin(); entry != entries_.end(); ++entry) {
    const int common = std::min(common_prefix(entry->tokens, prompt), most);
    if (common <= length) continue;
    length = common;
    found = entry;
  }
  if (length < shortest_) {
    length = 0;
    found = entries_.end();
  }
  return found;
}

int PrefixCache::match(std::span<const int32_t> prompt, int most) const {
  int length = 0;
  best(prompt, most, length);
  return length;
}

std::unique_ptr<Sequence> PrefixCache::share(std::span<const int32_t> prompt, int most) {
  int length = 0;
  const auto entry = best(prompt, most, length);
  if (entry == entries_.end()) return nullptr;
  std::unique_ptr<Sequence> shared = std::move(model_.fork(*entry->sequence, 1)[0]);
  model_.truncate(*shared, length);
  entries_.splice(entries_.begin(), entries_, entry);
  return shared;
}

void PrefixCache::add(std::span<const int32_t> tokens, std::unique_ptr<Sequence> sequence) {
  const auto length = static_cast<int>(tokens.size());
  if (length < shortest_) return;
  for (auto entry = entries_.begin(); entry != entries_.end();) {
    const int common = common_prefix(entry->tokens, tokens);
    if (common == length) {
      entries_.splice(entries_.begin(), entries_, entry);
      return;
    }
    const auto next = std::next(entry);
    if (common == static_cast<int>(entry->tokens.size())) erase(entry);
    entry = next;
  }
  entries_.push_front({{tokens.begin(), tokens.end()}, std::move(sequence)});
  tokens_ += length;
}

void PrefixCache::erase(Entries::const_iterator entry) {
  tokens_ -= static_cast<int64_t>(entry->tokens.size());
  entries_.erase(entry);
}

void PrefixCache::shrink_to(int64_t tokens) {
  while (tokens_ > tokens && !entries_.empty()) erase(std::prev(entries_.end()));
}

}  // namespace sol
