#include "model/bpe.h"

#include <algorithm>
#include <functional>

#include "base/fail.h"
#include "model/byte_alphabet.h"
#include "model/utf8.h"

namespace sol {

Bpe::Bpe(TokenizerFile& file, bool words_are_bytes) : words_are_bytes_(words_are_bytes) {
  const Component model = file.component("model");
  const std::string& where = model.where();
  if (model.is_null()) fail("{}: missing", where);
  // Files of tokenizers' first versions do not name the type.
  if (model.has("type") && model.type() != "BPE") {
    fail("{}: the type \"{}\" is not supported, only \"BPE\" is", where, model.type());
  }
  model.allow_only({"type", "dropout", "unk_token", "continuing_subword_prefix",
                    "end_of_word_suffix", "fuse_unk", "byte_fallback", "ignore_merges"});
  if (!file.has_vocabulary) fail("{}: the field \"vocab\" is missing", where);
  if (!file.has_merges) fail("{}: the field \"merges\" is missing", where);
  vocabulary_.reserve(file.vocabulary.size());
  const std::string vocabulary_where = where + ".vocab";
  for (const TokenizerFile::Piece& piece : file.vocabulary) {
    vocabulary_.add(piece.text, piece.id, vocabulary_where);
  }
  file.vocabulary = {};
  read_options(model);
  read_merges(file);
  file.merges = {};
}

void Bpe::read_options(const Component& model) {
  const std::string& where = model.where();
  if (model.has("dropout") && !model.child("dropout").is_zero_or_null()) {
    fail("{}.dropout: random merges are not supported; set it to null", where);
  }
  for (const char* field : {"continuing_subword_prefix", "end_of_word_suffix"}) {
    if (!model.text_or(field, "").empty())
      fail("{}.{}: not supported; it must be empty", where, field);
  }
  fuse_unknown_ = model.flag_or("fuse_unk", false);
  byte_fallback_ = model.flag_or("byte_fallback", false);
  ignore_merges_ = model.flag_or("ignore_merges", false);
  if (model.has("unk_token") && !model.child("unk_token").is_null()) {
    const std::string unknown = model.text("unk_token");
    unknown_ = vocabulary_.find(unknown);
    if (unknown_ < 0) fail("{}.unk_token: \"{}\" is not in the vocabulary", where, unknown);
  }
  for (int byte = 0; byte < 256; ++byte) {
    const auto i = static_cast<size_t>(byte);
    const char character = static_cast<char>(byte);
    const std::string_view letter = words_are_bytes_
                                        ? byte_to_letter(static_cast<unsigned char>(byte))
                                        : std::string_view(&character, 1);
    byte_ids_[i] = vocabulary_.find(letter);
    all_bytes_ = all_bytes_ && byte_ids_[i] >= 0;
    fallback_ids_[i] = byte_fallback_ ? vocabulary_.find(fmt::format("<0x{:02X}>", byte)) : -1;
  }
}

void Bpe::read_merges(const TokenizerFile& file) {
  merges_ = PairMap<Merge>(file.merges.size());
  const auto is_leaf = [&](int32_t id) {
    return id == unknown_ ||
           (byte_fallback_ &&
            std::find(fallback_ids_.begin(), fallback_ids_.end(), id) != fallback_ids_.end());
  };
  for (size_t rank = 0; rank < file.merges.size(); ++rank) {
    const auto& [text, left_bytes] = file.merges[rank];
    const std::string_view both = text;
    const auto id_of = [&](std::string_view piece) {
      const int32_t id = vocabulary_.find(piece);
      if (id < 0) {
        fail("{}: model.merges[{}]: \"{}\" is not in the vocabulary", file.path.string(), rank,
             piece);
      }
      return id;
    };
    const std::string_view left = both.substr(0, left_bytes), right = both.substr(left_bytes);
    if (left.empty() || right.empty()) {
      fail("{}: model.merges[{}]: one of its two pieces is empty", file.path.string(), rank);
    }
    const int32_t first = id_of(left), second = id_of(right);
    // Of a merge that is there twice the last rank counts, as in Hugging Face's map.
    merges_.set(first, second, {static_cast<uint32_t>(rank), id_of(both)});
    // A fallback byte or the unknown token inside a merge does not show in the characters.
    if (is_leaf(first) || is_leaf(second)) can_cut_ = false;
    if (!words_are_bytes_) add_joint(left, right);
  }
}

// Whoever merges `left` and `right` joins left's last character and right's first.
void Bpe::add_joint(std::string_view left, std::string_view right) {
  size_t last = left.size() - 1;
  while (last > 0 && (static_cast<unsigned char>(left[last]) & 0xC0) == 0x80) --last;
  const int32_t before = vocabulary_.find(left.substr(last));
  const int32_t after = vocabulary_.find(right.substr(0, utf8_length(right[0])));
  if (before >= 0 && after >= 0) joints_.set(before, after, true);
}

std::string Bpe::describe_unknown() const {
  if (words_are_bytes_ && all_bytes_) return "none";
  if (byte_fallback_ &&
      std::find(fallback_ids_.begin(), fallback_ids_.end(), -1) == fallback_ids_.end())
    return "bytes";
  return unknown_ >= 0 ? std::string(vocabulary_.piece(unknown_)) : "left out";
}

void Bpe::encode(std::string_view word, Scratch& scratch, std::vector<int32_t>& out) const {
  if (word.empty()) return;
  if (word.size() > INT32_MAX) {
    fail("cannot tokenize {} bytes without a break; the limit is 2 GiB", word.size());
  }
  if (!words_are_bytes_) return encode_text(word, scratch, out);
  if (word.size() > WordCache::kMaxKeyBytes) return encode_bytes(word, scratch, out);
  const WordCache::Key key = WordCache::key(word);
  if (scratch.cache.find(key, out)) return;
  const size_t before = out.size();
  encode_bytes(word, scratch, out);
  scratch.cache.insert(key, std::span(out).subspan(before));
}

void Bpe::encode_bytes(std::string_view word, Scratch& scratch, std::vector<int32_t>& out) const {
  if (ignore_merges_ || !all_bytes_) {
    scratch.letters.clear();
    append_as_letters(word, scratch.letters);
  }
  if (ignore_merges_) {
    const int32_t whole = vocabulary_.find(scratch.letters);
    if (whole >= 0) return out.push_back(whole);
  }
  scratch.ids.clear();
  if (all_bytes_) {
    for (const char c : word) scratch.ids.push_back(byte_ids_[static_cast<unsigned char>(c)]);
  } else {
    to_symbols(scratch.letters, scratch.ids);
  }
  merge(scratch.ids, scratch, out);
}

void Bpe::encode_text(std::string_view word, Scratch& scratch, std::vector<int32_t>& out) const {
  if (ignore_merges_) {
    const int32_t whole = vocabulary_.find(word);
    if (whole >= 0) return out.push_back(whole);
  }
  scratch.ids.clear();
  to_symbols(word, scratch.ids);
  if (can_cut_) {
    merge_in_parts(scratch, out);
  } else {
    merge(scratch.ids, scratch, out);
  }
}

int32_t Bpe::character_id(std::string_view character) const {
  if (character.size() == 1 && !words_are_bytes_) {
    return byte_ids_[static_cast<unsigned char>(character[0])];
  }
  return vocabulary_.find(character);
}

void Bpe::to_symbols(std::string_view text, std::vector<int32_t>& ids) const {
  bool unknown_waits = false;
  for (size_t at = 0; at < text.size();) {
    const std::string_view character = text.substr(at, utf8_length(text[at]));
    at += character.size();
    const int32_t id = character_id(character);
    if (id >= 0) {
      if (std::exchange(unknown_waits, false)) ids.push_back(unknown_);
      ids.push_back(id);
    } else if (append_fallback_bytes(character, ids)) {
      // Hugging Face leaves an unknown token waiting here, so that it comes after these bytes.
    } else if (unknown_ >= 0) {
      if (unknown_waits && !fuse_unknown_) ids.push_back(unknown_);
      unknown_waits = true;
    }
  }
  if (unknown_waits) ids.push_back(unknown_);
}

bool Bpe::append_fallback_bytes(std::string_view character, std::vector<int32_t>& ids) const {
  for (const char c : character) {
    if (fallback_ids_[static_cast<unsigned char>(c)] < 0) return false;
  }
  for (const char c : character) ids.push_back(fallback_ids_[static_cast<unsigned char>(c)]);
  return true;
}

void Bpe::merge_in_parts(Scratch& scratch, std::vector<int32_t>& out) const {
  const std::span<const int32_t> ids = scratch.ids;
  for (size_t begin = 0; begin < ids.size();) {
    size_t end = begin + 1;
    while (end < ids.size() && joints_.find(ids[end - 1], ids[end])) ++end;
    const std::span<const int32_t> part = ids.subspan(begin, end - begin);
    begin = end;
    if (part.size() == 1) {
      out.push_back(part[0]);
      continue;
    }
    if (part.size_bytes() > WordCache::kMaxKeyBytes) {
      merge(part, scratch, out);
      continue;
    }
    const WordCache::Key key =
        WordCache::key({reinterpret_cast<const char*>(part.data()), part.size_bytes()});
    if (scratch.cache.find(key, out)) continue;
    const size_t before = out.size();
    merge(part, scratch, out);
    scratch.cache.insert(key, std::span(out).subspan(before));
  }
}

// Repeatedly merges the pair of lowest rank, the leftmost first among equals. The queue holds rank
// and position of every pair that was mergeable when it arose; a pair that has changed since is
// passed over.
void Bpe::merge(std::span<const int32_t> ids, Scratch& scratch, std::vector<int32_t>& out) const {
  const auto n = static_cast<int32_t>(ids.size());
  auto& symbols = scratch.symbols;
  auto& queue = scratch.queue;
  symbols.resize(ids.size());
  queue.clear();
  const auto at = [&](int32_t i) -> Scratch::Symbol& { return symbols[static_cast<size_t>(i)]; };
  const auto entry = [](uint32_t rank, int32_t position) {
    return static_cast<uint64_t>(rank) << 32 | static_cast<uint32_t>(position);
  };
  const auto offer = [&](int32_t left, int32_t right) {
    const Merge* merge = merges_.find(at(left).id, at(right).id);
    if (!merge) return;
    queue.push_back(entry(merge->rank, left));
    std::push_heap(queue.begin(), queue.end(), std::greater<>());
  };
  for (int32_t i = 0; i < n; ++i) at(i) = {ids[static_cast<size_t>(i)], i - 1, i + 1};
  for (int32_t i = 0; i + 1 < n; ++i) {
    const Merge* merge = merges_.find(at(i).id, at(i + 1).id);
    if (merge) queue.push_back(entry(merge->rank, i));
  }
  std::make_heap(queue.begin(), queue.end(), std::greater<>());
  while (!queue.empty()) {
    const auto rank = static_cast<uint32_t>(queue.front() >> 32);
    const auto left = static_cast<int32_t>(queue.front() & 0xFFFFFFFFu);
    std::pop_heap(queue.begin(), queue.end(), std::greater<>());
    queue.pop_back();
    const int32_t right = at(left).next;
    if (at(left).id < 0 || right == n) continue;
    const Merge* merge = merges_.find(at(left).id, at(right).id);
    if (!merge || merge->rank != rank) continue;
    at(left).id = merge->result;
    at(left).next = at(right).next;
    at(right).id = -1;
    if (at(left).next < n) {
      at(at(left).next).previous = left;
      offer(left, at(left).next);
    }
    if (at(left).previous >= 0) offer(at(left).previous, left);
  }
  for (int32_t i = 0; i < n; i = at(i).next) out.push_back(at(i).id);
}

}  // namespace sol
