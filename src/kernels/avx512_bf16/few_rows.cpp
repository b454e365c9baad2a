// Few rows wait for the weights: these are read once for all, by output as a single row's product
// reads them. By channel pieces are short, and sending for the next rows line by line, into the
// first-level cache, is up to a quarter faster than looking ahead in them.
#include "kernels/avx512_bf16/rows.h"
#include "kernels/isa/prefetch.h"

namespace sol::kernels::avx512_bf16 {
namespace {

// Calls body.operator()<R>() for R = rows, of 1..Most.
template <int Most, typename Body>
void with_rows(int rows, const Body& body) {
  if constexpr (Most > 1)
    if (rows < Most) return with_rows<Most - 1>(rows, body);
  body.template operator()<Most>();
}

// --- out_major: dot products, 16 pairs at a time ---

// O outputs of R rows, `step` apart in y, their weights at w, w + stride, ...
template <int R, int O>
[[gnu::flatten]] void dot_tile(const bf16* x, int64_t x_stride, const bf16* w, int64_t stride,
                               int in, float* y, int64_t y_stride, int step) {
  constexpr int kSums = (R + 3) / 4 * 4;  // of which four are folded at once
  Vec sum[O][kSums];
  repeat<O>([&](int o) { repeat<kSums>([&](int r) { sum[o][r] = zero(); }); });
  const auto add = [&](int i, auto load_some) {
    __m512i weights[O];
    repeat<O>([&](int o) { weights[o] = load_some(w + o * stride + i); });
    repeat<R>([&](int r) {
      const __m512i inputs = load_some(x + r * x_stride + i);
      repeat<O>([&](int o) { sum[o][r] = add_pairs(sum[o][r], inputs, weights[o]); });
    });
  };
  int i = 0;
  for (; i + kPairedInputs <= in; i += kPairedInputs) {
    for (int o = 0; o < O; ++o) send_for(w + o * stride + i);
    add(i, [](const bf16* p) { return _mm512_loadu_si512(p); });
  }
  if (i < in) {
    const __mmask32 rest = first_of_32(in - i);
    add(i, [&](const bf16* p) { return _mm512_maskz_loadu_epi16(rest, p); });
  }
  repeat<O>([&](int o) {
    repeat<kSums / 4>([&](int four) {
      const Vec* of_four = sum[o] + 4 * four;
      float sums[4];
      reduce_add4(of_four[0], of_four[1], of_four[2], of_four[3], sums);
      for (int j = 0; j < smaller(4, R - 4 * four); ++j)
        y[(4 * four + j) * y_stride + o * step] = sums[j];
    });
  });
}

// As many rows as have their sums in registers; more are two groups as equal as can be, the first
// of R rows and the other of R or one fewer.
constexpr int kRowsTogether = kFewByOutput / 2;

// Calls body.operator()<rows>(first row) for both groups.
template <int R, typename Body>
void for_both_groups(int rows, const Body& body) {
  body.template operator()<R>(0);
  if (rows == 2 * R) return body.template operator()<R>(R);
  if constexpr (R > 1)
    if (rows > R) body.template operator()<R - 1>(R);
}

// --- in_major: pairs of channels along the outputs ---

// More channels at a time would save sums from being loaded and stored, but the processor's own
// prefetching follows no more than some 16 rows; the piece of y that is added to, 4 KB of each row,
// stays in cache.
constexpr int kTogether = 16, kPieceOutputs = 1024;

// Weights of the channels that are being added, and of those that follow.
struct ChannelRows {
  const bf16* row[kTogether];
  const bf16* next[kTogether];
  int count;

  ChannelRows(const Channels& channels, int k) : count(smaller(kTogether, channels.n - k)) {
    for (int c = 0; c < count; ++c) {
      row[c] = row_of<bf16>(channels.w, channels.at(k + c));
      next[c] = row_of<bf16>(channels.w, channels.at(smaller(k + kTogether + c, channels.n - 1)));
    }
  }
};

// Adds the channels' products with R rows to kPairOutputs outputs from o on, of which `outputs` are
// there.
template <int R, typename Columns>
[[gnu::flatten]] void add_channels(const ChannelRows& channels, const bf16* x, int64_t x_stride,
                                   bool first, int o, int outputs, const Columns& columns, float* y,
                                   int64_t y_stride) {
  Vec sum[R][2];
  repeat<R>([&](int r) {
    const float* from = y + r * y_stride + o;
    sum[r][0] = first ? zero() : columns.load_from(from, 0);
    sum[r][1] = first ? zero() : columns.load_from(from, kWidth);
  });
  for (int c = 0; c < channels.count; c += 2) {
    const bf16* second = c + 1 < channels.count ? channels.row[c + 1] + o : nullptr;
    const Pairs pairs = interleaved(channels.row[c] + o, second, outputs);
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

}  // namespace

void few_out_major(const WeightView& w, const RoundedRows& x, int out_begin, int out_end, float* y,
                   int64_t y_stride) {
  const int first = x.count <= kRowsTogether ? x.count : (x.count + 1) / 2;
  with_rows<kRowsTogether>(first, [&]<int First>() {
    constexpr int kSums = 24, O = smaller(kSums / First, 8);
    for_streams<O>(out_begin, out_end, [&]<int Outputs>(int o, int step) {
      for_both_groups<First>(x.count, [&]<int R>(int r) {
        dot_tile<R, Outputs>(x.rows + r * x.stride, x.stride, row_of<bf16>(w, o), step * w.stride,
                             w.in, y + r * y_stride + o, y_stride, step);
      });
    });
  });
}

void few_in_major(const Channels& channels, const RoundedRows& x, int out_begin, int out_end,
                  float* y, int64_t y_stride) {
  with_rows<kFewByChannel>(x.count, [&]<int R>() {
    for (int begin = out_begin; begin < out_end; begin += kPieceOutputs) {
      const int end = smaller(begin + kPieceOutputs, out_end);
      for (int k = 0; k < channels.n; k += kTogether) {
        const ChannelRows rows(channels, k);
        for (int o = begin; o < end; o += kPairOutputs) {
          for (int c = 0; c < rows.count; ++c) __builtin_prefetch(rows.next[c] + o);
          with_columns<kPairOutputs>(end - o, [&](const auto& columns) {
            add_channels<R>(rows, x.rows + k, x.stride, k == 0, o, end - o, columns, y, y_stride);
          });
        }
      }
    }
  });
}

}  // namespace sol::kernels::avx512_bf16
