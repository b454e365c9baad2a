// Few rows wait for the weights: these are read once for all, by output as a single row's product
// reads them. By channel pieces are short, and sending for the next rows line by line, into the
// first-level cache, is up to a quarter faster than looking ahead in them.
#include "kernels/avx512_bf16/few_rows.h"

#include "kernels/isa/prefetch.h"

namespace sol::kernels::avx512_bf16 {
namespace {

static_assert(kFewByOutput == 2 * kRowsTogether && kFewByChannel == kRowsTogether);

// --- out_major: dot products, 16 pairs at a time ---

// O outputs of R rows, `step` apart in y, their weights at w, w + stride, ...
template <int R, int O>
[[gnu::flatten]] void dot_tile(const bf16* x, int64_t x_stride, const bf16* w, int64_t stride,
                               int in, float* y, int64_t y_stride, int step) {
  Vec sum[O][kSumsOf<R>];
  repeat<O>([&](int o) { repeat<kSumsOf<R>>([&](int r) { sum[o][r] = zero(); }); });
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
    for (int o = 0; o < O; ++o) send_for_one_of<O>(w + o * stride + i);
    add(i, [](const bf16* p) { return _mm512_loadu_si512(p); });
  }
  if (i < in) {
    const __mmask32 rest = first_of_32(in - i);
    add(i, [&](const bf16* p) { return _mm512_maskz_loadu_epi16(rest, p); });
  }
  repeat<O>([&](int o) { store_sums<R>(sum[o], y + o * step, y_stride); });
}

// --- in_major: pairs of channels along the outputs ---

constexpr int kPieceOutputs = 1024;  // 4 KB of each row of y

template <int R, typename Columns>
[[gnu::flatten]] void add_weights(const ChannelRows<bf16>& channels, const bf16* x,
                                  int64_t x_stride, bool first, int o, int outputs,
                                  const Columns& columns, float* y, int64_t y_stride) {
  add_channels<R>(channels, x, x_stride, first, o, outputs, columns, y, y_stride, interleaved);
}

}  // namespace

void few_out_major(const WeightView& w, const RoundedRows& x, int out_begin, int out_end, float* y,
                   int64_t y_stride) {
  with_rows<kRowsTogether>(rows_of_first_group(x.count), [&]<int First>() {
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
  with_rows<kRowsTogether>(x.count, [&]<int R>() {
    for (int begin = out_begin; begin < out_end; begin += kPieceOutputs) {
      const int end = smaller(begin + kPieceOutputs, out_end);
      for (int k = 0; k < channels.n; k += kTogether) {
        const ChannelRows<bf16> rows(channels, k);
        for (int o = begin; o < end; o += kPairOutputs) {
          for (int c = 0; c < rows.count; ++c) __builtin_prefetch(rows.next[c] + o);
          with_columns<kPairOutputs>(end - o, [&](const auto& columns) {
            add_weights<R>(rows, x.rows + k, x.stride, k == 0, o, end - o, columns, y, y_stride);
          });
        }
      }
    }
  });
}

}  // namespace sol::kernels::avx512_bf16
