// Text as blocks of token ids, tokenised once into cached files, which are mapped: what is not read
// takes no memory.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <stop_token>
#include <vector>

#include "sol/tokenizer.h"
#include "text/text_reader.h"

namespace sol {

// Documents tokenised without begin token and joined without separators, cut into blocks of
// context + T + 1 ids (docs/arithmetic.md, "Data"). The last incomplete block is dropped. Where the
// options frame documents, each stands between the begin and the end token.
class BlockDataset {
 public:
  // Tokenises `files`, or maps the cached result in `cache_dir` when one made from the same files
  // (path, size, time of change), options and tokenizer (its fingerprint) exists. An empty
  // cache_dir means no cache. Throws Error when there is not even one block, saying how many ids
  // there were and are needed, or when documents are to be framed and the tokenizer lacks one of
  // the two tokens; Cancelled soon after `stop` is requested.
  static BlockDataset open(const std::vector<std::filesystem::path>& files,
                           const TextOptions& options, const Tokenizer& tokenizer, int block_length,
                           const std::filesystem::path& cache_dir, std::stop_token stop = {});

  // Prepared data (text/prepare_corpus.h): its shards, mapped. Each is cut by itself, what is left
  // at its end is dropped. Throws Error when it is incomplete, damaged, made by another tokenizer,
  // or has not even one block. Any number of processes may have it open.
  static BlockDataset open_prepared(const std::filesystem::path& dir, const Tokenizer& tokenizer,
                                    int block_length);

  // From ids in memory.
  static BlockDataset from_ids(std::vector<int32_t> ids, int block_length);

  int64_t size() const { return blocks_; }  // number of blocks
  // block_length ids. Throws Error where its shard of prepared data is damaged or has ids that the
  // tokenizer does not: the first block that is read of each has the whole shard verified.
  std::span<const int32_t> block(int64_t i) const;
  std::span<const int32_t> unverified_block(int64_t i) const;  // the same without that
  int block_length() const { return block_length_; }
  int64_t token_count() const;  // those of no block included
  // All of them, in one piece: throws Error for prepared data of several shards.
  std::span<const int32_t> ids() const;

 private:
  struct Unverified;
  struct Part {
    std::shared_ptr<const void> owner;  // of the memory: a vector or a mapped file
    std::span<const int32_t> ids;
    int64_t first_block = 0;
    std::shared_ptr<Unverified> unverified{};  // null: has been verified
  };
  explicit BlockDataset(int block_length);
  void add(std::shared_ptr<const void> owner, std::span<const int32_t> ids);
  const Part& part_of(int64_t block) const;
  std::span<const int32_t> block_of(const Part& part, int64_t block) const;
  static void verify(const Part& part);
  int block_length_ = 0;
  int64_t blocks_ = 0;
  std::vector<Part> parts_;  // ascending in first_block
};

}  // namespace sol
