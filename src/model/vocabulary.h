// Pieces and their ids.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace sol {

// Ids may leave gaps. Pieces are stored once, back to back.
class Vocabulary {
 public:
  static constexpr int64_t kMaxId = (1 << 22) - 1;

  // Throws Error, beginning with `where`, for an id out of 0..kMaxId, an id that another piece has
  // or a piece that is there already.
  void add(std::string_view piece, int64_t id, const std::string& where);
  void reserve(size_t pieces);

  int32_t find(std::string_view piece) const;  // -1: none
  bool has(int64_t id) const;                  // whether some piece has this id
  std::string_view piece(int32_t id) const;    // has(id) must hold
  int32_t id_limit() const { return static_cast<int32_t>(pieces_.size()); }  // largest id + 1
  size_t count() const { return count_; }

 private:
  struct Span {
    uint32_t begin = 0, length = 0;
    bool used = false;
  };
  void rehash(size_t slots);
  size_t slot_of(std::string_view piece) const;  // the piece's slot, or the free one for it

  std::string text_;
  std::vector<Span> pieces_;    // by id
  std::vector<int32_t> slots_;  // open addressing, a power of two; -1: free
  size_t count_ = 0;
};

}  // namespace sol
