#include "model/vocabulary.h"

#include <bit>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/fail.h"

namespace sol {

void Vocabulary::reserve(size_t pieces) {
  const size_t slots = std::bit_ceil(2 * pieces + 16);
  if (slots > slots_.size()) rehash(slots);
}

size_t Vocabulary::slot_of(std::string_view text) const {
  const size_t mask = slots_.size() - 1;
  size_t slot = XXH3_64bits(text.data(), text.size()) & mask;
  while (slots_[slot] >= 0 && piece(slots_[slot]) != text) slot = (slot + 1) & mask;
  return slot;
}

void Vocabulary::rehash(size_t slots) {
  slots_.assign(slots, -1);
  for (int32_t id = 0; id < id_limit(); ++id) {
    if (has(id)) slots_[slot_of(piece(id))] = id;
  }
}

void Vocabulary::add(std::string_view text, int64_t id, const std::string& where) {
  if (id < 0 || id > kMaxId) {
    fail("{}: the id {} of \"{}\" is out of range (0 to {})", where, id, text, kMaxId);
  }
  if (text_.size() + text.size() > UINT32_MAX) fail("{}: the pieces exceed 4 GiB", where);
  if (has(id)) {
    fail("{}: \"{}\" and \"{}\" have the same id {}", where, piece(static_cast<int32_t>(id)), text,
         id);
  }
  reserve(count_ + 1);
  const size_t slot = slot_of(text);
  if (slots_[slot] >= 0) {
    fail("{}: \"{}\" is there twice, with ids {} and {}", where, text, slots_[slot], id);
  }
  slots_[slot] = static_cast<int32_t>(id);
  if (static_cast<size_t>(id) >= pieces_.size()) pieces_.resize(static_cast<size_t>(id) + 1);
  pieces_[static_cast<size_t>(id)] = {static_cast<uint32_t>(text_.size()),
                                      static_cast<uint32_t>(text.size()), true};
  text_.append(text);
  ++count_;
}

int32_t Vocabulary::find(std::string_view text) const {
  return slots_.empty() ? -1 : slots_[slot_of(text)];
}

bool Vocabulary::has(int64_t id) const {
  return id >= 0 && id < static_cast<int64_t>(pieces_.size()) &&
         pieces_[static_cast<size_t>(id)].used;
}

std::string_view Vocabulary::piece(int32_t id) const {
  const Span& span = pieces_[static_cast<size_t>(id)];
  return std::string_view(text_).substr(span.begin, span.length);
}

}  // namespace sol
