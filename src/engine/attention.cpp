#include "engine/attention.h"

#include <algorithm>
#include <cmath>
#include <mutex>

#include "base/threads.h"
#include "kernels/select.h"

namespace sol {

namespace {

using kernels::TokenRange;

constexpr int causal_tile_rows =
    64;  // positions per call: enough to reuse a tile of keys from cache

// Per-thread working memory, kept between calls.
struct Scratch {
  std::vector<float> floats, page_scores;
  std::vector<int> pages;
  std::vector<TokenRange> ranges;
  float* reserve(int64_t n) {
    if (static_cast<int64_t>(floats.size()) < n) floats.resize(static_cast<size_t>(n));
    return floats.data();
  }
};

Scratch& scratch() {
  thread_local Scratch s;
  return s;
}

void attend_dense_chunks(const LlamaConfig& config, int layer, Batch& batch) {
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

// Quest's selection for one query head (paper, appendix "Quest masking"; docs/arithmetic.md): into
// scratch().ranges. Returns the number of attended tokens.
int select_ranges(const CpuSequence& sequence, int layer, int kv_head, const float* q, int budget) {
  Scratch& s = scratch();
  const CacheLayout& layout = sequence.layout();
  const SequenceOptions& options = sequence.options();
  const int n = sequence.length(), pages = sequence.page_count();
  s.page_scores.resize(static_cast<size_t>(pages));
  for (int first = 0, block = 0; first < pages; first += layout.pages, ++block) {
    kernels::kernels().page_scores(q, sequence.extrema(layer, kv_head, block), layout.type,
                                   std::min(layout.pages, pages - first), layout.dim,
                                   &s.page_scores[first]);
  }
  const int keep = (budget + options.page_size - 1) / options.page_size;
  kernels::top_pages(s.page_scores.data(), pages, std::min(keep, pages), !options.force_sinks,
                     s.pages);
  kernels::token_ranges(s.pages, n,
                        {options.page_size, options.sinks, options.window, options.force_sinks},
                        s.ranges);
  int attended = 0;
  for (const TokenRange& range : s.ranges) attended += range.end - range.begin;
  return attended;
}

// One query head group of one decoded token. Returns the tokens attended to, summed over the group.
int64_t attend_group(const LlamaConfig& config, int layer, int kv_head, const Segment& segment,
                     Batch& batch) {
  const CpuSequence& sequence = *segment.sequence;
  const int n = sequence.length(), dim = config.head_dim;
  const int budget = kernels::keep_count(segment.action.kappa, n);
  const float scale = 1.0f / std::sqrt(static_cast<float>(dim));
  Scratch& s = scratch();
  int64_t total = 0;
  for (int g = 0; g < config.group(); ++g) {
    const int head = kv_head * config.group() + g;
    const int64_t at = (static_cast<int64_t>(segment.first_row) * config.num_heads + head) * dim;
    if (budget == n) {
      s.ranges.assign(1, {0, n});
      total += n;
    } else {
      total += select_ranges(sequence, layer, kv_head, &batch.q[at], budget);
    }
    kernels::kernels().attend(&batch.q[at], sequence.keys(layer, kv_head),
                              sequence.values(layer, kv_head), s.ranges.data(),
                              static_cast<int>(s.ranges.size()), scale, s.reserve(n),
                              &batch.attended[at]);
  }
  return total;
}

void attend_decoded_tokens(const LlamaConfig& config, int layer, Batch& batch) {
  const int64_t count = static_cast<int64_t>(batch.segments.size());
  std::vector<int64_t> attended(static_cast<size_t>(count) * config.num_kv_heads);
  // Head by head, and within a head sequence after sequence: forks of one prefix follow each other,
  // so the prefix's keys and values of that head are still in cache for the next of them.
  parallel_for(count * config.num_kv_heads, [&](int64_t i) {
    const int kv_head = static_cast<int>(i / count);
    const Segment& segment = batch.segments[i % count];
    attended[i] = attend_group(config, layer, kv_head, segment, batch);
  });
  for (int64_t i = 0; i < count; ++i) {
    StepCost* cost = batch.costs.empty() ? nullptr : batch.costs[i];
    if (!cost) continue;
    const CpuSequence& sequence = *batch.segments[i].sequence;
    const int64_t n = sequence.length();
    int64_t total = 0;
    for (int head = 0; head < config.num_kv_heads; ++head) total += attended[head * count + i];
    cost->attended += static_cast<double>(total) /
                      (static_cast<double>(n) * config.num_heads * config.num_layers);
    const uint64_t element_bytes =
        static_cast<uint64_t>(kernels::size_of(sequence.layout().type)) * config.head_dim;
    // Query heads of a group that select the same keys read them once from memory; counted as if
    // they selected alike, so this never overstates the saving's counterpart for one head per
    // group.
    cost->bytes += 2 * element_bytes * static_cast<uint64_t>(total) / config.group();
    if (kernels::keep_count(batch.segments[i].action.kappa, static_cast<int>(n)) < n) {
      cost->bytes +=
          2 * element_bytes * static_cast<uint64_t>(sequence.page_count()) * config.num_kv_heads;
    }
  }
}

}  // namespace

void attend(const LlamaConfig& config, int layer, Batch& batch) {
  if (batch.decode) {
    attend_decoded_tokens(config, layer, batch);
  } else {
    attend_dense_chunks(config, layer, batch);
  }
}

}  // namespace sol
