#include "model/word_cache.h"

#include <utility>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace sol {
namespace {

constexpr size_t kMaxSlots = size_t{1} << 17;

}  // namespace

WordCache::Key WordCache::key(std::string_view bytes) {
  return {bytes, XXH3_64bits(bytes.data(), bytes.size())};
}

size_t WordCache::slot_of(const Key& key) const {
  const size_t mask = slots_.size() - 1;
  size_t at = key.hash & mask;
  for (; slots_[at].used; at = (at + 1) & mask) {
    const Entry& entry = slots_[at];
    if (entry.hash == key.hash &&
        std::string_view(keys_).substr(entry.key_begin, entry.key_bytes) == key.bytes) {
      break;
    }
  }
  return at;
}

bool WordCache::find(const Key& key, std::vector<int32_t>& out) const {
  const Entry& entry = slots_[slot_of(key)];
  if (!entry.used) return false;
  const auto begin = ids_.begin() + entry.ids_begin;
  out.insert(out.end(), begin, begin + entry.id_count);
  return true;
}

void WordCache::insert(const Key& key, std::span<const int32_t> ids) {
  if (2 * (count_ + 1) > slots_.size()) {
    if (slots_.size() < kMaxSlots) {
      rebuild(2 * slots_.size());
    } else {
      slots_.assign(slots_.size(), {});
      keys_.clear();
      ids_.clear();
      count_ = 0;
    }
  }
  slots_[slot_of(key)] = {key.hash,
                          static_cast<uint32_t>(keys_.size()),
                          static_cast<uint32_t>(ids_.size()),
                          static_cast<uint16_t>(key.bytes.size()),
                          static_cast<uint16_t>(ids.size()),
                          true};
  keys_.append(key.bytes);
  ids_.insert(ids_.end(), ids.begin(), ids.end());
  ++count_;
}

void WordCache::rebuild(size_t slots) {
  const std::vector<Entry> old = std::exchange(slots_, std::vector<Entry>(slots));
  for (const Entry& entry : old) {
    if (!entry.used) continue;
    size_t at = entry.hash & (slots - 1);
    while (slots_[at].used) at = (at + 1) & (slots - 1);
    slots_[at] = entry;
  }
}

}  // namespace sol
