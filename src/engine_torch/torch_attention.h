// Attention over the paged cache as tensors: dense chunks, and decoded tokens under κ.
#pragma once

#include <ATen/core/Tensor.h>

#include <span>
#include <vector>

#include "engine_torch/torch_cache.h"

namespace sol {

// Consecutive rows of one sequence: a chunk of a dense pass, or a single decoded token.
struct TorchSegment {
  TorchSequence* sequence;
  int first_row, rows;
  int position;   // of the first row, in the cache
  Action action;  // of a decoded token; dense for a chunk
};

// Where a pass writes its keys: slots of its rows, and the pages that hold them, for
// CachePool::write.
struct WritePlan {
  WritePlan(std::span<const TorchSegment> segments, const at::Device& device);
  at::Tensor slots, pages, page_slots;
};

// Causal attention of a dense pass. Made once per pass, when the sequences have grown.
class DenseAttention {
 public:
  DenseAttention(const LlamaConfig& config, std::span<const TorchSegment> segments,
                 const at::Device& device);
  // q [rows, heads * dim], rotated -> what is attended to, likewise.
  at::Tensor run(const CachePool::Layer& cache, const at::Tensor& q) const;

 private:
  at::Tensor attend(const CachePool::Layer& cache, const at::Tensor& q, size_t segment) const;

  const LlamaConfig& config_;
  std::span<const TorchSegment> segments_;
  std::vector<CachedStretch> stretches_;
  at::Device device_;
};

// Attention of one decoded token per sequence. Sequences that begin with the same blocks,
// neighbours in the batch, attend to them in one product; what they have of their own is one
// product for everybody. Columns of a row's scores: first the blocks that its group shares, padded
// to the longest group, then the rest, padded likewise.
class DecodeAttention {
 public:
  DecodeAttention(const LlamaConfig& config, std::span<const TorchSegment> segments, bool count,
                  const at::Device& device);
  at::Tensor run(const CachePool::Layer& cache, const at::Tensor& q);

  // Summed over the layers so far, per segment: keys that query heads attended to, and keys that
  // any query head of a key head needed. Only where `count` asked for it.
  std::vector<int64_t> attended() const;
  std::vector<int64_t> needed() const;
  // Whether κ lets the segment attend to less than everything.
  bool sparse(size_t segment) const { return sparse_[segment]; }

 private:
  struct Group {
    int first_row, rows;
    CachedStretch shared;
  };
  void find_groups(const at::Device& device);
  void lay_out_tails(const at::Device& device);
  void lay_out_columns(const at::Device& device);
  void lay_out_choice(const at::Device& device);
  at::Tensor products(const at::Tensor& q, const at::Tensor& tensor, bool pages) const;
  at::Tensor visible_keys(const CachePool::Layer& cache, const at::Tensor& q) const;
  at::Tensor weighted_values(const at::Tensor& weights, const at::Tensor& values) const;

  const LlamaConfig& config_;
  std::span<const TorchSegment> segments_;
  CacheLayout layout_;
  int64_t rows_;
  std::vector<Group> groups_;
  int64_t shared_ = 0, tail_ = 0;       // columns; multiples of the page size
  at::Tensor tail_slots_, tail_pages_;  // [rows * tail columns or pages]
  at::Tensor real_, forced_;            // bool [1, rows, 1, columns]
  // Choice of pages, where the budget of any row binds; [1, rows, 1, 1].
  std::vector<bool> sparse_;
  at::Tensor keep_, keep_ties_, keep_all_;
  at::Tensor real_pages_;  // [1, rows, 1, pages]
  int64_t most_pages_ = 0;
  bool count_;
  at::Tensor attended_, needed_;  // int64 [rows]
};

}  // namespace sol
