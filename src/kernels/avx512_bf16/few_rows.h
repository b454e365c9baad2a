// What products of few rows with bf16 weights and with int8 codes share.
#pragma once

#include "kernels/avx512_bf16/rows.h"
#include "kernels/isa/prefetch.h"

namespace sol::kernels::avx512_bf16 {

// Calls body.operator()<R>() for R = rows, of 1..Most.
template <int Most, typename Body>
void with_rows(int rows, const Body& body) {
  if constexpr (Most > 1)
    if (rows < Most) return with_rows<Most - 1>(rows, body);
  body.template operator()<Most>();
}

// As many rows as have their sums in registers; more are two groups as equal as can be, the first
// of R rows and the other of R or one fewer.
constexpr int kRowsTogether = 8;

inline int rows_of_first_group(int rows) {
  return rows <= kRowsTogether ? rows : (rows + 1) / 2;
}

// Calls body.operator()<rows>(first row) for both groups.
template <int R, typename Body>
void for_both_groups(int rows, const Body& body) {
  body.template operator()<R>(0);
  if (rows == 2 * R) return body.template operator()<R>(R);
  if constexpr (R > 1)
    if (rows > R) body.template operator()<R - 1>(R);
}

// Room for sums of R rows, of which reduce_add4() folds four at once.
template <int R>
inline constexpr int kSumsOf = (R + 3) / 4 * 4;

// y[r * y_stride] of R rows from their sums, which are in vectors.
template <int R>
inline void store_sums(const Vec (&sum)[kSumsOf<R>], float* y, int64_t y_stride) {
  repeat<kSumsOf<R> / 4>([&](int four) {
    const Vec* of_four = sum + 4 * four;
    float sums[4];
    reduce_add4(of_four[0], of_four[1], of_four[2], of_four[3], sums);
    for (int j = 0; j < smaller(4, R - 4 * four); ++j) y[(4 * four + j) * y_stride] = sums[j];
  });
}

// Channels whose products are added to the same sums. More at a time would save sums from being
// loaded and stored, but the processor's own prefetching follows no more than some 16 rows; the
// piece of y that is added to stays in cache.
constexpr int kTogether = 16;

// Weights of the channels that are being added, and of those that follow.
template <typename Stored>
struct ChannelRows {
  const Stored* row[kTogether];
  const Stored* next[kTogether];
  int count;

  ChannelRows(const Channels& channels, int k) : count(smaller(kTogether, channels.n - k)) {
    for (int c = 0; c < count; ++c) {
      row[c] = row_of<Stored>(channels.w, channels.at(k + c));
      next[c] = row_of<Stored>(channels.w, channels.at(smaller(k + kTogether + c, channels.n - 1)));
    }
  }
};

// Adds the channels' products with R rows to kPairOutputs outputs from o on, of which `outputs` are
// there.
template <int R, typename Stored, typename Columns, typename PairsOf>
[[gnu::flatten]] void add_channels(const ChannelRows<Stored>& channels, const bf16* x,
                                   int64_t x_stride, bool first, int o, int outputs,
                                   const Columns& columns, float* y, int64_t y_stride,
                                   const PairsOf& pairs_of) {
  Vec sum[R][2];
  repeat<R>([&](int r) {
    const float* from = y + r * y_stride + o;
    sum[r][0] = first ? zero() : columns.load_from(from, 0);
    sum[r][1] = first ? zero() : columns.load_from(from, kWidth);
  });
  for (int c = 0; c < channels.count; c += 2) {
    const Stored* second = c + 1 < channels.count ? channels.row[c + 1] + o : nullptr;
    const Pairs pairs = pairs_of(channels.row[c] + o, second, outputs);
    repeat<R>([&](int r) {
      const __m512i inputs = set_pair(x + r * x_stride + c);
      sum[r][0] = add_pairs(sum[r][0], inputs, pairs.low);
      sum[r][1] = add_pairs(sum[r][1], inputs, pairs.high);
    });
  }
  repeat<R>([&](int r) {
    columns.store_to(y + r * y_stride + o, 0, sum[r][0]);
    columns.store_to(y + r * y_stride + o, kWidth, sum[r][1]);
  });
}

// A product with weights by channel, Piece outputs at a time. pairs_of(first, second, outputs) are
// the weights of two channels for the next kPairOutputs outputs, of one where second is null; zeros
// behind the first `outputs`.
template <typename Stored, int Piece, typename PairsOf>
void multiply_channels(const Channels& channels, const RoundedRows& x, int out_begin, int out_end,
                       float* y, int64_t y_stride, const PairsOf& pairs_of) {
  constexpr int kLine = 64 / sizeof(Stored);
  with_rows<kRowsTogether>(rows_of_first_group(x.count), [&]<int First>() {
    for (int begin = out_begin; begin < out_end; begin += Piece) {
      const int end = smaller(begin + Piece, out_end);
      for (int k = 0; k < channels.n; k += kTogether) {
        const ChannelRows<Stored> rows(channels, k);
        for_both_groups<First>(x.count, [&]<int R>(int r) {
          for (int o = begin; o < end; o += kPairOutputs) {
            if (r == 0 && (o - begin) % kLine == 0)
              for (int c = 0; c < rows.count; ++c) __builtin_prefetch(rows.next[c] + o);
            with_columns<kPairOutputs>(end - o, [&](const auto& columns) {
              add_channels<R>(rows, x.rows + r * x.stride + k, x.stride, k == 0, o, end - o,
                              columns, y + r * y_stride, y_stride, pairs_of);
            });
          }
        });
      }
    }
  });
}

// A product with weights by output, in tiles of rows and outputs that have `Sums` sums at most.
// tile.operator()<R, O>(r, o, step) makes that of R rows from r on with O outputs, o, o + step, ...
template <int Sums, typename Tile>
void multiply_outputs(const RoundedRows& x, int out_begin, int out_end, const Tile& tile) {
  with_rows<kRowsTogether>(rows_of_first_group(x.count), [&]<int First>() {
    constexpr int kOutputs = smaller(Sums / First, 8);
    for_streams<kOutputs>(out_begin, out_end, [&]<int O>(int o, int step) {
      for_both_groups<First>(x.count,
                             [&]<int R>(int r) { tile.template operator()<R, O>(r, o, step); });
    });
  });
}

}  // namespace sol::kernels::avx512_bf16
