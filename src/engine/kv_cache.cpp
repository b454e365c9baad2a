#include "engine/kv_cache.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "base/large_memory.h"

namespace sol {

namespace {

constexpr int min_block_tokens = 32;
constexpr int64_t alignment = 64;
// Untouched blocks of a slab take no memory but their addresses, huge pages apart.
constexpr int64_t largest_slab = 32 << 20, most_slab_blocks = 64;

int64_t round_up(int64_t n, int64_t multiple) {
  return (n + multiple - 1) / multiple * multiple;
}

}  // namespace

CacheLayout::CacheLayout(const LlamaConfig& config, const SequenceOptions& options,
                         kernels::ElementType element_type, kernels::PageSummary page_summary)
    : layers(config.num_layers),
      kv_heads(config.num_kv_heads),
      dim(config.head_dim),
      type(element_type),
      summary(page_summary),
      page_size(options.page_size),
      tokens(static_cast<int>(round_up(min_block_tokens, options.page_size))),
      pages(tokens / options.page_size) {
  const int64_t element = kernels::size_of(type);
  head_bytes = static_cast<int64_t>(tokens) * dim * element;
  pages_offset = static_cast<int64_t>(layers) * kv_heads * 2 * head_bytes;
  pages_head_bytes = static_cast<int64_t>(pages) * 2 * dim * element;
  block_bytes = round_up(pages_offset + static_cast<int64_t>(layers) * kv_heads * pages_head_bytes,
                         alignment);
}

BlockPool::BlockPool(int64_t block_bytes)
    : block_bytes_(block_bytes),
      slab_blocks_(std::clamp<int64_t>(largest_slab / block_bytes, 1, most_slab_blocks)) {}

BlockPool::~BlockPool() {
  for (std::byte* slab : slabs_) std::free(slab);
}

void BlockPool::add_slab() {
  // So that nothing throws once there is a slab, nor release() ever.
  slabs_.reserve(slabs_.size() + 1);
  free_.reserve((slabs_.size() + 1) * static_cast<size_t>(slab_blocks_));
  int64_t bytes = slab_blocks_ * block_bytes_;
  // The last page of a slab is needed as much as the others.
  constexpr auto page = static_cast<int64_t>(huge_page_bytes);
  if (bytes >= page) bytes = round_up(bytes, page);
  void* memory = allocate_large(static_cast<size_t>(bytes));
  slabs_.push_back(static_cast<std::byte*>(memory));
  for (int64_t b = slab_blocks_ - 1; b >= 0; --b) free_.push_back(slabs_.back() + b * block_bytes_);
}

std::shared_ptr<std::byte> BlockPool::acquire() {
  std::byte* block = nullptr;
  {
    const std::lock_guard lock(mutex_);
    if (free_.empty()) add_slab();
    block = free_.back();
    free_.pop_back();
  }
  return {block, [pool = shared_from_this()](std::byte* b) { pool->release(b); }};
}

uint64_t BlockPool::blocks_in_use() const {
  const std::lock_guard lock(mutex_);
  return slabs_.size() * static_cast<uint64_t>(slab_blocks_) - free_.size();
}

void BlockPool::release(std::byte* block) {
  const std::lock_guard lock(mutex_);
  free_.push_back(block);
}

CpuSequence::CpuSequence(const SequenceOptions& options, const CacheLayout& layout,
                         std::shared_ptr<BlockPool> pool)
    : options_(options), layout_(layout), pool_(std::move(pool)) {}

uint64_t CpuSequence::own_bytes() const {
  const auto owned = std::count_if(blocks_.begin(), blocks_.end(),
                                   [](const auto& block) { return block.use_count() == 1; });
  return static_cast<uint64_t>(owned) * static_cast<uint64_t>(layout_.block_bytes);
}

std::unique_ptr<CpuSequence> CpuSequence::fork() const {
  return std::make_unique<CpuSequence>(*this);
}

void CpuSequence::make_own(int block) {
  if (blocks_[block].use_count() == 1) return;
  auto copy = pool_->acquire();
  std::memcpy(copy.get(), blocks_[block].get(), static_cast<size_t>(layout_.block_bytes));
  blocks_[block] = std::move(copy);
  pointers_[block] = blocks_[block].get();
}

void CpuSequence::grow(int count) {
  if (count <= 0) return;
  const int end = length_ + count;
  if (length_ % layout_.tokens != 0) make_own(length_ / layout_.tokens);
  const size_t before = blocks_.size();
  try {
    while (static_cast<int>(blocks_.size()) * layout_.tokens < end) {
      blocks_.push_back(pool_->acquire());
      pointers_.push_back(blocks_.back().get());
    }
  } catch (...) {
    // A fork would share a block too many, and both would write into it.
    blocks_.resize(before);
    pointers_.resize(before);
    throw;
  }
  length_ = end;
}

void CpuSequence::truncate(int length) {
  if (length >= length_) return;
  length = std::max(length, 0);
  const bool cut = length % layout_.page_size != 0;
  if (cut) make_own(length / layout_.tokens);  // first, as memory may end here
  length_ = length;
  const size_t needed = static_cast<size_t>((length_ + layout_.tokens - 1) / layout_.tokens);
  blocks_.resize(needed);
  pointers_.resize(needed);
  if (!cut) return;
  for (int layer = 0; layer < layout_.layers; ++layer) update_pages(layer, length_ - 1, 1);
}

void CpuSequence::write(int layer, int position, int count, const float* keys, const float* values,
                        int64_t stride) {
  const auto store = kernels::kernels().store;
  const int64_t row_bytes = static_cast<int64_t>(layout_.dim) * kernels::size_of(layout_.type);
  for (int r = 0; r < count; ++r) {
    const int block = (position + r) / layout_.tokens;
    const int64_t slot = (position + r) % layout_.tokens;
    std::byte* base = blocks_[block].get() + slot * row_bytes;
    for (int head = 0; head < layout_.kv_heads; ++head) {
      const int64_t source = r * stride + static_cast<int64_t>(head) * layout_.dim;
      store(keys + source, layout_.dim, layout_.type, base + layout_.keys_offset(layer, head));
      store(values + source, layout_.dim, layout_.type, base + layout_.values_offset(layer, head));
    }
  }
}

void CpuSequence::update_pages(int layer, int position, int count) {
  const kernels::Kernels& table = kernels::kernels();
  const auto summarise =
      layout_.summary == kernels::PageSummary::moments ? table.page_moments : table.page_extrema;
  const int size = layout_.page_size;
  const int64_t row_bytes = static_cast<int64_t>(layout_.dim) * kernels::size_of(layout_.type);
  for (int page = position / size; page * size < position + count; ++page) {
    const int first = page * size;
    const int keys_here = std::min(size, length_ - first);
    std::byte* block = blocks_[first / layout_.tokens].get();
    const int slot = first % layout_.tokens;
    for (int head = 0; head < layout_.kv_heads; ++head) {
      summarise(block + layout_.keys_offset(layer, head) + slot * row_bytes, layout_.type,
                keys_here, layout_.dim,
                block + layout_.page_offset(layer, head) + (slot / size) * 2 * row_bytes);
    }
  }
}

kernels::CacheView CpuSequence::keys(int layer, int head) const {
  return {pointers_.data(), layout_.keys_offset(layer, head), layout_.tokens, layout_.dim,
          layout_.type};
}

kernels::CacheView CpuSequence::values(int layer, int head) const {
  return {pointers_.data(), layout_.values_offset(layer, head), layout_.tokens, layout_.dim,
          layout_.type};
}

kernels::PagesView CpuSequence::pages(int layer, int head) const {
  return {pointers_.data(), layout_.page_offset(layer, head),
          layout_.pages,    layout_.dim,
          layout_.type,     layout_.summary};
}

}  // namespace sol
