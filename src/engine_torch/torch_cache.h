// The paged cache as tensors: blocks of positions that forks share, one row of every tensor per
// position.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "engine/kv_cache.h"
#include "sol/frozen_model.h"

namespace sol {

// Blocks of one layout. Position p of a sequence lies in its block p / tokens at p % tokens: the
// slot block * tokens + p % tokens. Free blocks of the lowest numbers are taken first, so that a
// prefix mostly is one stretch of slots that attention reads in place.
class CachePool : public std::enable_shared_from_this<CachePool> {
 public:
  CachePool(const LlamaConfig& config, const CacheLayout& layout, const at::Device& device);

  // Makes room for `blocks` more than are in use. The only call that needs memory of the device,
  // and it moves the tensors.
  void reserve(int blocks);
  // A block of those reserved; who lets go of the last copy returns it, on any thread.
  std::shared_ptr<const int> acquire();
  // Copies blocks {from, to} of every layer.
  void copy(std::span<const std::pair<int, int>> blocks);

  // Per layer: keys and values [kv_heads, slots, dim]; extrema [kv_heads, slots / page size,
  // 2 * dim], of a page's keys first the largest, then the smallest.
  struct Layer {
    at::Tensor keys, values, extrema;
  };
  const std::vector<Layer>& layers() const { return layers_; }

  // Stores one layer's rotated keys and values [rows, kv_heads, dim] at these slots [rows], then
  // recomputes the extrema of the pages that they touched: page_slots [pages, page size] are the
  // pages' slots, a real one repeated where a page has fewer keys.
  void write(int layer, const at::Tensor& slots, const at::Tensor& keys, const at::Tensor& values,
             const at::Tensor& pages, const at::Tensor& page_slots);

  const CacheLayout& layout() const { return layout_; }
  uint64_t blocks_in_use() const;

 private:
  void release(int block);

  CacheLayout layout_;
  at::Device device_;
  at::ScalarType type_;
  std::vector<Layer> layers_;
  mutable std::mutex mutex_;  // of what follows
  int blocks_ = 0;
  std::set<int> free_;
};

class TorchSequence final : public Sequence {
 public:
  TorchSequence(const SequenceOptions& options, std::shared_ptr<CachePool> pool)
      : options_(options), pool_(std::move(pool)) {}

  int length() const override { return length_; }
  const SequenceOptions& options() const override { return options_; }
  uint64_t own_bytes() const override;

  std::unique_ptr<TorchSequence> fork() const { return std::make_unique<TorchSequence>(*this); }
  // Only lets go of blocks. The extrema of a page that is cut still know the keys that are gone;
  // nobody reads them before the next token, which falls into that page, has made them anew.
  void truncate(int length);

  // The last block, where the next token falls into it and others hold it as well; else -1.
  int shared_last_block() const;
  void replace_last_block(std::shared_ptr<const int> block) { blocks_.back() = std::move(block); }
  int blocks_to_grow(int count) const;
  // Counts `count` more positions; their keys and values are written layer by layer. The last block
  // must be its own, and the pool must have room.
  void grow(int count);

  int64_t slot(int position) const {
    const int tokens = pool_->layout().tokens;
    return int64_t{*blocks_[static_cast<size_t>(position / tokens)]} * tokens + position % tokens;
  }
  int block(size_t index) const { return *blocks_[index]; }
  size_t blocks() const { return blocks_.size(); }
  const std::shared_ptr<CachePool>& pool() const { return pool_; }
  // For tests: one cached key, [dim].
  std::vector<float> key(int layer, int head, int position) const;

 private:
  SequenceOptions options_;
  std::shared_ptr<CachePool> pool_;
  std::vector<std::shared_ptr<const int>> blocks_;
  int length_ = 0;
};

// Slots of a sequence's first `count` positions, and the pages that hold them.
struct CachedStretch {
  CachedStretch() = default;
  CachedStretch(const TorchSequence& sequence, int count, const at::Device& device);

  // Of one of a pool's tensors, as float32: [kv_heads, count, width]. Where the slots follow each
  // other and the cache is float32 nothing is copied.
  at::Tensor positions(const at::Tensor& tensor) const;
  at::Tensor pages(const at::Tensor& tensor) const;

  int64_t count = 0, page_count = 0;

 private:
  int64_t first_slot_ = 0, first_page_ = 0;
  at::Tensor slots_, pages_;  // only where they do not follow each other
};

}  // namespace sol
