#include "engine_torch/torch_cache.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

#include <algorithm>
#include <cassert>

#include "engine_torch/torch_device.h"

namespace sol {

using at::Tensor;

CachePool::CachePool(const LlamaConfig& config, const CacheLayout& layout, const at::Device& device)
    : layout_(layout),
      device_(device),
      type_(layout.type == kernels::ElementType::bf16 ? at::kBFloat16 : at::kFloat),
      layers_(static_cast<size_t>(config.num_layers)) {}

void CachePool::reserve(int blocks) {
  int old = 0, wanted = 0;
  {
    const std::lock_guard lock(mutex_);
    const int missing = blocks - static_cast<int>(free_.size());
    if (missing <= 0) return;
    old = blocks_;
    // Growing step by step must not copy everything at each step.
    wanted = old + std::max(missing, old / 4);
  }
  const auto enlarge = [&](Tensor& tensor, int64_t per_block, int64_t width) {
    // Zeros: attention multiplies slots that hold nothing by 0, which must not make a NaN.
    Tensor larger = at::zeros({layout_.kv_heads, wanted * per_block, width},
                              at::TensorOptions().dtype(type_).device(device_));
    if (tensor.defined())
      larger.narrow(1, 0, old * per_block).copy_(tensor.narrow(1, 0, old * per_block));
    tensor = std::move(larger);
  };
  // Tensor after tensor, so that only one of them exists twice at a time. Should memory end midway,
  // those that have grown already are only larger than needed.
  for (Layer& layer : layers_) {
    enlarge(layer.keys, layout_.tokens, layout_.dim);
    enlarge(layer.values, layout_.tokens, layout_.dim);
    enlarge(layer.extrema, layout_.pages, 2 * int64_t{layout_.dim});
  }
  // Counted only once all of them are there.
  std::set<int> more;
  for (int block = old; block < wanted; ++block) more.insert(more.end(), block);
  const std::lock_guard lock(mutex_);
  free_.merge(more);
  blocks_ = wanted;
}

std::shared_ptr<const int> CachePool::acquire() {
  auto block = std::make_unique<int>();  // first, as memory may end here
  {
    const std::lock_guard lock(mutex_);
    assert(!free_.empty());
    *block = *free_.begin();
    free_.erase(free_.begin());
  }
  return {block.release(), [pool = shared_from_this()](const int* b) {
            pool->release(*b);
            delete b;
          }};
}

void CachePool::release(int block) {
  const std::lock_guard lock(mutex_);
  free_.insert(block);
}

uint64_t CachePool::blocks_in_use() const {
  const std::lock_guard lock(mutex_);
  return static_cast<uint64_t>(blocks_) - free_.size();
}

void CachePool::copy(std::span<const std::pair<int, int>> blocks) {
  if (blocks.empty()) return;
  const auto rows = [&](int per_block, auto which) {
    std::vector<int64_t> indices;
    for (const auto& pair : blocks)
      for (int i = 0; i < per_block; ++i) indices.push_back(int64_t{which(pair)} * per_block + i);
    return on_device(indices, {static_cast<int64_t>(indices.size())}, device_);
  };
  const auto from = [](const auto& pair) { return pair.first; };
  const auto to = [](const auto& pair) { return pair.second; };
  const Tensor from_slots = rows(layout_.tokens, from), to_slots = rows(layout_.tokens, to);
  const Tensor from_pages = rows(layout_.pages, from), to_pages = rows(layout_.pages, to);
  for (Layer& layer : layers_) {
    layer.keys.index_copy_(1, to_slots, layer.keys.index_select(1, from_slots));
    layer.values.index_copy_(1, to_slots, layer.values.index_select(1, from_slots));
    layer.extrema.index_copy_(1, to_pages, layer.extrema.index_select(1, from_pages));
  }
}

void CachePool::write(int layer, const Tensor& slots, const Tensor& keys, const Tensor& values,
                      const Tensor& pages, const Tensor& page_slots) {
  Layer& cache = layers_[static_cast<size_t>(layer)];
  cache.keys.index_copy_(1, slots, keys.transpose(0, 1).to(type_));
  cache.values.index_copy_(1, slots, values.transpose(0, 1).to(type_));
  const Tensor paged = cache.keys.index_select(1, page_slots.view(-1))
                           .view({layout_.kv_heads, -1, layout_.page_size, layout_.dim});
  // Extrema of stored values are stored values: nothing is rounded.
  cache.extrema.index_copy_(1, pages, at::cat({paged.amax(2), paged.amin(2)}, -1));
}

uint64_t TorchSequence::own_bytes() const {
  const auto owned =
      std::ranges::count_if(blocks_, [](const auto& block) { return block.use_count() == 1; });
  return static_cast<uint64_t>(owned) * static_cast<uint64_t>(pool_->layout().block_bytes);
}

void TorchSequence::truncate(int length) {
  if (length >= length_) return;
  length_ = std::max(length, 0);
  const int tokens = pool_->layout().tokens;
  blocks_.resize(static_cast<size_t>((length_ + tokens - 1) / tokens));
}

int TorchSequence::shared_last_block() const {
  const bool shared = length_ % pool_->layout().tokens != 0 && blocks_.back().use_count() > 1;
  return shared ? *blocks_.back() : -1;
}

int TorchSequence::blocks_to_grow(int count) const {
  const int tokens = pool_->layout().tokens;
  return (length_ + count + tokens - 1) / tokens - static_cast<int>(blocks_.size());
}

void TorchSequence::grow(int count) {
  // All or none, should memory end: a fork would share a block too many, and both would write into
  // it.
  std::vector<std::shared_ptr<const int>> more;
  for (int missing = blocks_to_grow(count); missing > 0; --missing)
    more.push_back(pool_->acquire());
  blocks_.insert(blocks_.end(), more.begin(), more.end());
  length_ += count;
}

std::vector<float> TorchSequence::key(int layer, int head, int position) const {
  const Tensor row = pool_->layers()[static_cast<size_t>(layer)]
                         .keys.select(0, head)
                         .select(0, slot(position))
                         .to(at::kCPU, at::kFloat)
                         .contiguous();
  return {row.data_ptr<float>(), row.data_ptr<float>() + row.numel()};
}

CachedStretch::CachedStretch(const TorchSequence& sequence, int positions, const at::Device& device)
    : count(positions) {
  const CacheLayout& layout = sequence.pool()->layout();
  page_count = (positions + layout.page_size - 1) / layout.page_size;
  const size_t blocks = static_cast<size_t>((positions + layout.tokens - 1) / layout.tokens);
  const int first = sequence.block(0);
  bool consecutive = true;
  for (size_t b = 1; b < blocks; ++b)
    consecutive = consecutive && sequence.block(b) == first + static_cast<int>(b);
  if (consecutive) {
    first_slot_ = int64_t{first} * layout.tokens;
    first_page_ = int64_t{first} * layout.pages;
    return;
  }
  std::vector<int64_t> slots, pages;
  for (int p = 0; p < positions; ++p) slots.push_back(sequence.slot(p));
  for (int p = 0; p < positions; p += layout.page_size)
    pages.push_back(sequence.slot(p) / layout.page_size);
  slots_ = on_device(slots, {count}, device);
  pages_ = on_device(pages, {page_count}, device);
}

Tensor CachedStretch::positions(const Tensor& tensor) const {
  const Tensor found =
      slots_.defined() ? tensor.index_select(1, slots_) : tensor.narrow(1, first_slot_, count);
  return found.to(at::kFloat);
}

Tensor CachedStretch::pages(const Tensor& tensor) const {
  const Tensor found =
      pages_.defined() ? tensor.index_select(1, pages_) : tensor.narrow(1, first_page_, page_count);
  return found.to(at::kFloat);
}

}  // namespace sol
