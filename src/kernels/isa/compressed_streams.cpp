// Products with compressed in_major weights: channels' rows are added up, whole numbers within a
// block of channels, floats from block to block.
#include "kernels/isa/channels.h"
#include "kernels/isa/compressed_products.h"
#include "kernels/isa/compressed_row.h"
#include "kernels/isa/fixed_point.h"
#include "kernels/isa/nibbles.h"
#include "kernels/isa/prefetch.h"

namespace sol::kernels::SOL_ISA_NAME {
namespace {

// Outputs that are summed at a time, in all rows: the longer the pieces of rows that are read, the
// better prefetching works, and sums stay in cache.
constexpr int kSums = 16384;
// 4-bit groups that are worked together, and channels at most.
constexpr int kQuad = 4;
constexpr int kMostTogether = 4;

// Channels [first, first + count) of a list that lie in one block, and where the next block's
// begin.
struct Block {
  const Channels& channels;
  int first, count;
  const std::byte* row[kFixedChannels];
  const std::byte* ahead[kFixedChannels];  // of the next block

  // Returns false at the list's end.
  bool advance() {
    first += count;
    count = 0;
    if (first == channels.n) return false;
    const auto block_of = [&](int k) { return channels.at(k) / kFixedChannels; };
    while (first + count < channels.n && block_of(first + count) == block_of(first)) ++count;
    for (int c = 0; c < count; ++c) {
      row[c] = row_at(channels.w, channels.at(first + c));
      ahead[c] = row_at(channels.w, channels.at(smaller(first + count + c, channels.n - 1)));
    }
    // Up to a whole step any row will do, as its factor is zero.
    static_assert(kFixedChannels % kMostTogether == 0);
    for (int c = count; c % kMostTogether != 0; ++c) row[c] = row[count - 1];
    return true;
  }
  // The beginning of the next block's codes: `bytes` from place `at` of each row.
  void send_for_next(int64_t at, int64_t bytes) const {
    for (int c = 0; c < count; ++c) send_for_begin(ahead[c], at, bytes);
  }
  // Of so many channels each.
  int steps(int each) const { return (count + each - 1) / each; }
  float input(const float* x, int c) const { return x[channels.at(first + c)]; }
};

// --- int8: a block has one scale ---

constexpr int kLineGroups = 2;  // in a cache line

struct Int8Factors {
  int32_t pairs[kFixedChannels / 2];
  float scale;

  void set_to(const Block& block, const float* x) {
    float scaled[kFixedChannels] = {};
    for (int c = 0; c < block.count; ++c)
      scaled[c] = block.input(x, c) * Int8Rows::row_scale(block.row[c], block.channels.w.out);
    int16_t numbers[kFixedChannels];
    scale = to_fixed_point(scaled, kFixedChannels, numbers);
    __builtin_memcpy(pairs, numbers, sizeof(pairs));
  }
};

// Adds a block's products to G groups of outputs from number `output` on, of which `left` are real.
template <int R, int G>
void add_int8(const Block& block, const Int8Factors (&factors)[R], bool first_block, int output,
              int left, float* y, int64_t y_stride) {
  ColumnSums sum[R][G];
  for (int r = 0; r < R; ++r)
    for (int g = 0; g < G; ++g) sum[r][g] = no_columns();
  for (int p = 0; p < block.steps(2); ++p) {
    const std::byte *a = block.row[2 * p] + output, *b = block.row[2 * p + 1] + output;
    if constexpr (G == kLineGroups) {
      send_for(a);
      send_for(b);
    }
    for (int g = 0; g < G; ++g) {
      const CodePairs pairs = load_pairs(a + g * kGroup, b + g * kGroup);
      for (int r = 0; r < R; ++r) add_products(sum[r][g], pairs, factors[r].pairs[p]);
    }
  }
  for (int r = 0; r < R; ++r)
    for (int g = 0; g < G; ++g) {
      float* to = y + r * y_stride + output + g * kGroup;
      Vec first = zero(), second = zero(), more, still_more;
      if (!first_block) load_pair(to, left - g * kGroup, first, second);
      columns_as_floats(sum[r][g], more, still_more);
      const Vec scale = set(factors[r].scale);
      store_pair(to, left - g * kGroup, fma(more, scale, first), fma(still_more, scale, second));
    }
}

// Outputs [out_begin, out_end), at most kSums / R of them.
template <int R>
void stream_int8(const Channels& channels, const float* x, int64_t x_stride, int out_begin,
                 int out_end, float* y, int64_t y_stride) {
  Block block{channels, 0, 0, {}, {}};
  for (bool first = true; block.advance(); first = false) {
    Int8Factors factors[R];
    for (int r = 0; r < R; ++r) factors[r].set_to(block, x + r * x_stride);
    block.send_for_next(out_begin, out_end - out_begin);
    int o = out_begin;
    for (; o + kLineGroups * kGroup <= out_end; o += kLineGroups * kGroup)
      add_int8<R, kLineGroups>(block, factors, first, o, out_end - o, y, y_stride);
    for (; o < out_end; o += kGroup)
      add_int8<R, 1>(block, factors, first, o, out_end - o, y, y_stride);
  }
}

// --- int4: a block has a scale for each group of outputs ---

template <int Groups>
struct Int4Factors {
  NibbleFactors<Groups> channels;
  alignas(64) float scale[Groups];

  // Of the groups [begin, begin + count) of rows. Others up to a multiple of kWidth get zeros.
  void set_to(const Block& block, const float* x, int begin, int count) {
    const int n = block.channels.w.out;
    for_vectors(count, [&](int g, auto part) {
      Vec scaled[kFixedChannels];
      Range range;
      for (int c = 0; c < block.count; ++c) {
        const bf16* scales = Int4Rows::scales(block.row[c], n) + begin + g;
        send_for_next_row(Int4Rows::scales(block.ahead[c], n) + begin + g);
        scaled[c] = set(block.input(x, c)) * load(scales, part);
        range.include(scaled[c]);
      }
      const FixedPoint fixed = range.by_lane();
      store(scale + g, fixed.scale);
      Whole numbers[kFixedChannels], total = no_whole();
      for (int c = 0; c < block.count; ++c) {
        numbers[c] = to_whole(scaled[c] * fixed.inverse);
        total = total + numbers[c];
      }
      for (int c = block.count; c % kMostTogether != 0; ++c) numbers[c] = no_whole();
      channels.set_total(g, total);
      for (int s = 0; s < block.steps(kStepChannels); ++s)
        channels.set_step(s, g, numbers + s * kStepChannels);
    });
  }
};

// Half of the outputs of four groups.
template <int R, int Groups, bool kSecond, typename Part>
void add_half(const Block& block, const Int4Factors<Groups>* factors, int g, int64_t offset,
              Part part, float* sums, int64_t sums_stride) {
  HalfSums half[R];
  for (int r = 0; r < R; ++r) half[r].begin(factors[r].channels, g);
  for (int s = 0; s < block.steps(kStepChannels); ++s) {
    const int c = s * kStepChannels;
    if constexpr (!kSecond)
      for (int k = 0; k < kStepChannels; ++k) send_for(block.row[c + k] + offset);
    const StepCodes codes = load_step<kSecond>(block.row + c, offset, part);
    for (int r = 0; r < R; ++r) half[r].add(codes, factors[r].channels, s, g);
  }
  for (int r = 0; r < R; ++r) {
    const Vec scale = spread(factors[r].scale + g);
    float* to = sums + r * sums_stride + g * kGroup + (kSecond ? 4 * kWidth : 0);
    for (int i = 0; i < 4; ++i)
      store(to + i * kWidth, fma(as_floats(half[r].sum(i)), scale, load(to + i * kWidth)));
  }
}

template <int R>
void stream_int4(const Channels& channels, const float* x, int64_t x_stride, int out_begin,
                 int out_end, float* y, int64_t y_stride) {
  constexpr int kPiece = kSums / R;
  alignas(64) float sums[R * kPiece] = {};
  Int4Factors<kPiece / kGroup> factors[R];
  Block block{channels, 0, 0, {}, {}};
  const int begin = out_begin / kGroup, groups = groups_of(out_end - out_begin);
  while (block.advance()) {
    for (int r = 0; r < R; ++r) factors[r].set_to(block, x + r * x_stride, begin, groups);
    const auto add = [&](int g, auto part) {
      const int64_t offset = int64_t{begin + g} * Int4Rows::kGroupBytes;
      add_half<R, kPiece / kGroup, false>(block, factors, g, offset, part, sums, kPiece);
      add_half<R, kPiece / kGroup, true>(block, factors, g, offset, part, sums, kPiece);
    };
    block.send_for_next(int64_t{begin} * Int4Rows::kGroupBytes,
                        int64_t{groups} * Int4Rows::kGroupBytes);
    int g = 0;
    for (; g + kQuad <= groups; g += kQuad) add(g, All{});
    if (g < groups) add(g, First{groups - g});
  }
  for (int r = 0; r < R; ++r)
    for (int o = out_begin; o < out_end; ++o) {
      const int i = o - out_begin, quad = i / (kQuad * kGroup) * (kQuad * kGroup);
      y[r * y_stride + o] = sums[r * kPiece + quad + HalfSums::place(i - quad)];
    }
}

template <int R>
void stream(const Channels& channels, const float* x, int64_t x_stride, int out_begin, int out_end,
            float* y, int64_t y_stride) {
  const bool eight = channels.w.type == WeightType::int8;
  for (int o = out_begin; o < out_end; o += kSums / R) {
    const int end = smaller(o + kSums / R, out_end);
    if (eight)
      stream_int8<R>(channels, x, x_stride, o, end, y, y_stride);
    else
      stream_int4<R>(channels, x, x_stride, o, end, y, y_stride);
  }
}

}  // namespace

void stream_channels_compressed(const WeightView& w, const float* x, int64_t x_stride, int rows,
                                const int* channels, int n, int out_begin, int out_end, float* y,
                                int64_t y_stride) {
  const Channels listed{w, channels, n};
  for_groups<4>(rows, [&]<int R>(int r) {
    stream<R>(listed, x + r * x_stride, x_stride, out_begin, out_end, y + r * y_stride, y_stride);
  });
}

}  // namespace sol::kernels::SOL_ISA_NAME
