// What words were encoded to: text repeats its words, and a lookup costs less than merging.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sol {

// Bounded: a full cache forgets everything and fills again, which costs little since the frequent
// words come back at once. Not for use by several threads.
class WordCache {
 public:
  static constexpr size_t kMaxKeyBytes = 64;  // longer words rarely repeat

  struct Key {
    std::string_view bytes;
    uint64_t hash;
  };
  static Key key(std::string_view bytes);

  // Appends the word's ids to `out` if it is here.
  bool find(const Key& key, std::vector<int32_t>& out) const;
  // The word must not be here yet.
  void insert(const Key& key, std::span<const int32_t> ids);

 private:
  struct Entry {
    uint64_t hash = 0;
    uint32_t key_begin = 0, ids_begin = 0;
    uint16_t key_bytes = 0, id_count = 0;
    bool used = false;
  };
  size_t slot_of(const Key& key) const;
  void rebuild(size_t slots);

  std::vector<Entry> slots_ = std::vector<Entry>(1024);
  std::string keys_;
  std::vector<int32_t> ids_;
  size_t count_ = 0;
};

}  // namespace sol
