// Byte-pair encoding of words (Sennrich et al., 2016), with the options of Hugging Face's BPE
// model.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/pair_map.h"
#include "model/tokenizer_file.h"
#include "model/vocabulary.h"
#include "model/word_cache.h"

namespace sol {

class Bpe {
 public:
  // What encoding needs beside the model. One per thread and model, since it remembers words.
  struct Scratch {
    struct Symbol {
      int32_t id;  // -1: merged into the one before
      int32_t previous, next;
    };
    WordCache cache;
    std::vector<int32_t> ids;
    std::vector<Symbol> symbols;
    std::vector<uint64_t> queue;
    std::string letters;
  };

  // Takes the file's vocabulary and merges. Throws Error naming the file and the field for another
  // type of model, an option that is not supported, or merges and vocabulary that do not fit each
  // other. `words_are_bytes`: words are given as bytes that stand for their letters
  // (byte_alphabet.h).
  Bpe(TokenizerFile& file, bool words_are_bytes);

  // Appends the word's ids. What has no piece becomes bytes or the unknown token where the model
  // has them, and is left out where it has not, as Hugging Face does. The word must be valid UTF-8
  // unless words are bytes.
  void encode(std::string_view word, Scratch& scratch, std::vector<int32_t>& out) const;

  const Vocabulary& vocabulary() const { return vocabulary_; }
  size_t merge_count() const { return merges_.size(); }
  std::string describe_unknown() const;  // what becomes of a character without a piece

 private:
  struct Merge {
    uint32_t rank;
    int32_t result;
  };

  void read_options(const Component& model);
  void read_merges(const TokenizerFile& file);
  void add_joint(std::string_view left, std::string_view right);
  int32_t character_id(std::string_view character) const;
  void encode_bytes(std::string_view word, Scratch& scratch, std::vector<int32_t>& out) const;
  void encode_text(std::string_view word, Scratch& scratch, std::vector<int32_t>& out) const;
  void to_symbols(std::string_view text, std::vector<int32_t>& ids) const;
  bool append_fallback_bytes(std::string_view character, std::vector<int32_t>& ids) const;
  void merge_in_parts(Scratch& scratch, std::vector<int32_t>& out) const;
  void merge(std::span<const int32_t> ids, Scratch& scratch, std::vector<int32_t>& out) const;

  Vocabulary vocabulary_;
  PairMap<Merge> merges_;
  // Pairs of neighbouring characters that some merge joins. Between any other two no merge can ever
  // reach across, so a text may be cut there: without a pre-tokeniser this is what finds words.
  PairMap<bool> joints_;
  bool can_cut_ = true;
  std::array<int32_t, 256> byte_ids_{};      // byte's letter, or character below 128
  std::array<int32_t, 256> fallback_ids_{};  // "<0x00>" to "<0xFF>"
  bool words_are_bytes_, all_bytes_ = true;
  bool fuse_unknown_ = false, byte_fallback_ = false, ignore_merges_ = false;
  int32_t unknown_ = -1;
};

}  // namespace sol
