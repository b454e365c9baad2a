#include "engine/dense_attention.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/threads.h"
#include "kernels/tile_dnnl.h"

namespace sol {
namespace {

using kernels::CacheView;

// Consecutive positions of one segment and the query heads of one key head.
struct Tile {
  const Segment* segment;
  int first;  // row within the segment
  int rows;
  int kv_head;

  int position() const { return segment->position + first; }
};

// Key head by key head, so that a head's keys and values stay in cache for the segment's next tile.
std::vector<Tile> cut(const LlamaConfig& config, const Batch& batch, int rows) {
  std::vector<Tile> tiles;
  for (int head = 0; head < config.num_kv_heads; ++head) {
    for (const Segment& segment : batch.segments) {
      for (int r = 0; r < segment.rows; r += rows)
        tiles.push_back({&segment, r, std::min(rows, segment.rows - r), head});
    }
  }
  return tiles;
}

// Where the tile's first query lies in batch.q, and its result in batch.attended.
int64_t offset(const LlamaConfig& config, const Tile& tile) {
  const int64_t row = tile.segment->first_row + tile.first;
  return (row * config.num_heads + tile.kv_head * config.group()) * config.head_dim;
}

float scale_of(const LlamaConfig& config) {
  return 1.0f / std::sqrt(static_cast<float>(config.head_dim));
}

// --- float32, our own kernel ---

void attend_exactly(const LlamaConfig& config, int layer, Batch& batch) {
  constexpr int tile_rows = 64;  // enough to reuse a tile of keys from cache
  const std::vector<Tile> tiles = cut(config, batch, tile_rows);
  const int group = config.group(), dim = config.head_dim;
  const int64_t stride = static_cast<int64_t>(config.num_heads) * dim;
  parallel_for(static_cast<int64_t>(tiles.size()), [&](int64_t i) {
    const Tile& tile = tiles[i];
    const CpuSequence& sequence = *tile.segment->sequence;
    const int64_t at = offset(config, tile);
    thread_local std::vector<float> memory;
    memory.resize(static_cast<size_t>(
        kernels::attend_causal_scratch(tile.rows, group, tile.position() + tile.rows, dim)));
    kernels::kernels().attend_causal(
        &batch.q[at], stride, tile.rows, group, tile.position(), sequence.keys(layer, tile.kv_head),
        sequence.values(layer, tile.kv_head), scale_of(config), memory.data(), &batch.attended[at]);
  });
}

// --- BF16 products ---

// Keys per step of the running softmax. With tile_queries rows the scores take 1 MB, which the
// second-level cache holds beside the operands.
constexpr int tile_keys = 512, tile_queries = 512;

struct TileMemory {
  std::vector<bf16> q, keys, values;
  std::vector<float> scores, out, largest, total;
};

// `count` cached vectors from token `first`, one after the other, then zeros up to `room`.
void gather(const CacheView& cache, int first, int count, int room, bf16* to) {
  for (int j = first; j < first + count;) {
    const int slot = j % cache.block_tokens;
    const int n = std::min(first + count - j, cache.block_tokens - slot);
    const auto* from =
        reinterpret_cast<const bf16*>(cache.blocks[j / cache.block_tokens] + cache.offset) +
        int64_t{slot} * cache.dim;
    std::memcpy(to + int64_t{j - first} * cache.dim, from,
                sizeof(bf16) * static_cast<size_t>(n) * static_cast<size_t>(cache.dim));
    j += n;
  }
  std::fill(to + int64_t{count} * cache.dim, to + int64_t{room} * cache.dim, bf16{0});
}

void attend_tile(const LlamaConfig& config, int layer, const Tile& tile, Batch& batch) {
  thread_local TileMemory m;
  const auto& k = kernels::kernels();
  const int group = config.group(), dim = config.head_dim, rows = tile.rows * group;
  const int64_t stride = int64_t{config.num_heads} * dim, at = offset(config, tile);
  const CacheView keys = tile.segment->sequence->keys(layer, tile.kv_head);
  const CacheView values = tile.segment->sequence->values(layer, tile.kv_head);

  m.q.resize(static_cast<size_t>(rows) * dim);
  m.keys.resize(static_cast<size_t>(tile_keys) * dim);
  m.values.resize(static_cast<size_t>(tile_keys) * dim);
  m.scores.resize(static_cast<size_t>(rows) * tile_keys);
  m.out.assign(static_cast<size_t>(rows) * dim, 0.0f);
  m.largest.assign(static_cast<size_t>(rows), -INFINITY);
  m.total.assign(static_cast<size_t>(rows), 0.0f);
  for (int r = 0; r < tile.rows; ++r)
    k.store(&batch.q[at + r * stride], group * dim, kernels::ElementType::bf16,
            &m.q[static_cast<size_t>(r) * group * dim]);

  const int end = tile.position() + tile.rows;
  for (int begin = 0; begin < end; begin += tile_keys) {
    const int count = std::min(tile_keys, end - begin);
    const int room = (count + 63) / 64 * 64;  // few shapes, each compiled once
    gather(keys, begin, count, room, m.keys.data());
    gather(values, begin, count, room, m.values.data());
    kernels::tile_product({rows, dim, room, dim, kernels::Layout::out_major, tile_keys, false},
                          m.q.data(), m.keys.data(), m.scores.data());
    k.softmax_step(m.scores.data(), tile_keys, rows, room, tile.position() - begin + 1, group,
                   scale_of(config), m.largest.data(), m.total.data(), m.out.data(), dim);
    kernels::tile_product({rows, room, dim, 2 * tile_keys, kernels::Layout::in_major, dim, true},
                          reinterpret_cast<const bf16*>(m.scores.data()), m.values.data(),
                          m.out.data());
  }

  for (int r = 0; r < rows; ++r) {
    const float share = 1.0f / m.total[r];
    const float* from = &m.out[static_cast<size_t>(r) * dim];
    float* to = &batch.attended[at + r / group * stride + int64_t{r % group} * dim];
    for (int d = 0; d < dim; ++d) to[d] = from[d] * share;
  }
}

void attend_rounded(const LlamaConfig& config, int layer, Batch& batch) {
  const std::vector<Tile> tiles = cut(config, batch, std::max(1, tile_queries / config.group()));
  parallel_for(static_cast<int64_t>(tiles.size()),
               [&](int64_t i) { attend_tile(config, layer, tiles[i], batch); });
}

}  // namespace

void attend_chunks(const LlamaConfig& config, int layer, Batch& batch, kernels::MatmulMode mode) {
  const auto narrow = [](const Segment& s) {
    return s.sequence->layout().type == kernels::ElementType::bf16;
  };
  if (mode == kernels::MatmulMode::library && kernels::have_tile_products() &&
      std::all_of(batch.segments.begin(), batch.segments.end(), narrow))
    attend_rounded(config, layer, batch);
  else
    attend_exactly(config, layer, batch);
}

}  // namespace sol
