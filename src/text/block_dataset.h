// Text as blocks of token ids, tokenised once into a cached file.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <stop_token>
#include <vector>

#include "base/mapped_file.h"
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

  // From ids in memory.
  static BlockDataset from_ids(std::vector<int32_t> ids, int block_length);

  int64_t size() const;                             // number of blocks
  std::span<const int32_t> block(int64_t i) const;  // block_length ids
  int block_length() const { return block_length_; }
  std::span<const int32_t> ids() const { return ids_; }  // all, those of no block included

 private:
  BlockDataset() = default;
  int block_length_ = 0;
  std::shared_ptr<const std::vector<int32_t>> owned_;
  std::shared_ptr<const MappedFile> mapped_;
  std::span<const int32_t> ids_;
};

}  // namespace sol
