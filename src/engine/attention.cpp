#include "engine/attention.h"

#include <algorithm>
#include <cmath>

#include "base/threads.h"
#include "engine/decode_attention.h"

namespace sol {

namespace {

constexpr int causal_tile_rows =
    64;  // positions per call: enough to reuse a tile of keys from cache

// Per-thread working memory, kept between calls.
struct Scratch {
  std::vector<float> floats;
  float* reserve(int64_t n) {
    if (static_cast<int64_t>(floats.size()) < n) floats.resize(static_cast<size_t>(n));
    return floats.data();
  }
};

Scratch& scratch() {
  thread_local Scratch s;
  return s;
}

void attend_dense_chunks(const LlamaConfig& config, int layer, Batch& batch, kernels::MatmulMode) {
  struct Tile {
    const Segment* segment;
    int first;  // row within the segment
    int rows;
    int head;
  };
  std::vector<Tile> tiles;
  for (int head = 0; head < config.num_kv_heads; ++head) {
    for (const Segment& segment : batch.segments) {
      for (int r = 0; r < segment.rows; r += causal_tile_rows) {
        tiles.push_back({&segment, r, std::min(causal_tile_rows, segment.rows - r), head});
      }
    }
  }
  const int group = config.group(), dim = config.head_dim;
  const int64_t stride = static_cast<int64_t>(config.num_heads) * dim;
  const float scale = 1.0f / std::sqrt(static_cast<float>(dim));
  parallel_for(static_cast<int64_t>(tiles.size()), [&](int64_t i) {
    const Tile& tile = tiles[i];
    const int position = tile.segment->position + tile.first;
    const int64_t at = (tile.segment->first_row + tile.first) * stride + tile.head * group * dim;
    float* memory = scratch().reserve(
        kernels::attend_causal_scratch(tile.rows, group, position + tile.rows, dim));
    kernels::kernels().attend_causal(&batch.q[at], stride, tile.rows, group, position,
                                     tile.segment->sequence->keys(layer, tile.head),
                                     tile.segment->sequence->values(layer, tile.head), scale,
                                     memory, &batch.attended[at]);
  });
}

}  // namespace

void attend(const LlamaConfig& config, int layer, Batch& batch, kernels::MatmulMode mode) {
  if (batch.decode) {
    attend_decoded(config, layer, batch);
  } else {
    attend_dense_chunks(config, layer, batch, mode);
  }
}

}  // namespace sol
