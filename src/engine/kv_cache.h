// The paged cache: keys, values and page summaries in reference-counted blocks that forks share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "kernels/kernels.h"
#include "sol/frozen_model.h"

namespace sol {

// Where things lie inside one block, which holds the same `tokens` positions of every layer.
//   per layer and key head: keys [tokens][dim], then values [tokens][dim];
//   after all of them, per layer and key head: page summaries [pages][2][dim], minimum and maximum
//   (or mean and variance).
// Summaries have the cache's type: the extremum of stored values is one of them, so nothing is
// lost; moments are rounded to it.
struct CacheLayout {
  CacheLayout(const LlamaConfig& config, const SequenceOptions& options, kernels::ElementType type,
              kernels::PageSummary summary = kernels::PageSummary::extrema);

  int layers, kv_heads, dim;
  kernels::ElementType type;
  kernels::PageSummary summary;
  int page_size;
  int tokens;          // per block: the smallest multiple of the page size that is at least 32
  int pages;           // per block
  int64_t head_bytes;  // keys (or values) of one layer and head
  int64_t pages_offset, pages_head_bytes;
  int64_t block_bytes;

  int64_t keys_offset(int layer, int head) const {
    return (layer * kv_heads + head) * 2 * head_bytes;
  }
  int64_t values_offset(int layer, int head) const { return keys_offset(layer, head) + head_bytes; }
  int64_t page_offset(int layer, int head) const {
    return pages_offset + (layer * kv_heads + head) * pages_head_bytes;
  }
};

// Hands out blocks and keeps returned ones for reuse, so that episodes that come and go do not ask
// the system for memory every time. Sequences may be destroyed on any thread. Memory comes in slabs
// of many blocks, in huge pages where the system has them: one head's keys are pieces of a few KiB
// far apart, and with pages of 4 KiB finding each would take a walk of the page tables.
class BlockPool : public std::enable_shared_from_this<BlockPool> {
 public:
  explicit BlockPool(int64_t block_bytes);
  ~BlockPool();
  std::shared_ptr<std::byte> acquire();
  uint64_t blocks_in_use() const;
  int64_t block_bytes() const { return block_bytes_; }

 private:
  void release(std::byte* block);
  void add_slab();

  int64_t block_bytes_;
  int64_t slab_blocks_;
  mutable std::mutex mutex_;
  std::vector<std::byte*> slabs_;
  std::vector<std::byte*> free_;  // blocks
};

// A sequence's blocks. A block with more than one owner is copied before it is written.
class CpuSequence final : public Sequence {
 public:
  CpuSequence(const SequenceOptions& options, const CacheLayout& layout,
              std::shared_ptr<BlockPool> pool);

  int length() const override { return length_; }
  const SequenceOptions& options() const override { return options_; }
  uint64_t own_bytes() const override;

  std::unique_ptr<CpuSequence> fork() const;

  // Makes room for positions length()..length()+count-1 and counts them as part of the sequence;
  // their keys and values are written by write() layer by layer. Has changed nothing where it
  // throws std::bad_alloc, nor has truncate.
  void grow(int count);
  // Forgets all but the first `length` tokens; the summary of a page that is cut is recomputed.
  void truncate(int length);

  // Stores the rotated keys and the values of `count` positions from `position`: row r at
  // keys + r * stride, heads one after another.
  void write(int layer, int position, int count, const float* keys, const float* values,
             int64_t stride);
  // Recomputes the summary of every page that holds one of these positions.
  void update_pages(int layer, int position, int count);

  kernels::CacheView keys(int layer, int head) const;
  kernels::CacheView values(int layer, int head) const;
  kernels::PagesView pages(int layer, int head) const;
  const std::byte* const* blocks() const { return pointers_.data(); }
  const CacheLayout& layout() const { return layout_; }
  const std::shared_ptr<BlockPool>& pool() const { return pool_; }
  int page_count() const { return (length_ + layout_.page_size - 1) / layout_.page_size; }

 private:
  void make_own(int block);

  SequenceOptions options_;
  CacheLayout layout_;
  std::shared_ptr<BlockPool> pool_;
  std::vector<std::shared_ptr<std::byte>> blocks_;
  std::vector<const std::byte*> pointers_;  // of blocks_, as the kernels want them
  int length_ = 0;
};

}  // namespace sol
