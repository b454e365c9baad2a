// Few rows wait for the weights: these are read once for all, by output as a single row's product
// reads them. By channel pieces are short, and sending for the next rows line by line, into the
// first-level cache, is up to a quarter faster than looking ahead in them.
#include "kernels/avx512_bf16/few_rows.h"

namespace sol::kernels::avx512_bf16 {
namespace {

static_assert(kFewByOutput == 2 * kRowsTogether && kFewByChannel == kRowsTogether);

// Dot products of R rows with O outputs, 16 pairs of inputs at a time. Outputs are `step` apart in
// y, their weights at w, w + stride, ...
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

}  // namespace

void few_out_major(const WeightView& w, const RoundedRows& x, int out_begin, int out_end, float* y,
                   int64_t y_stride) {
  multiply_outputs<24>(x, out_begin, out_end, [&]<int R, int O>(int r, int o, int step) {
    dot_tile<R, O>(x.rows + r * x.stride, x.stride, row_of<bf16>(w, o), step * w.stride, w.in,
                   y + r * y_stride + o, y_stride, step);
  });
}

void few_in_major(const Channels& channels, const RoundedRows& x, int out_begin, int out_end,
                  float* y, int64_t y_stride) {
  constexpr int kPiece = 1024;  // 4 KB of each row of y
  multiply_channels<bf16, kPiece>(channels, x, out_begin, out_end, y, y_stride,
                                  [](const bf16* first, const bf16* second, int outputs) {
                                    return interleaved(first, second, outputs);
                                  });
}

}  // namespace sol::kernels::avx512_bf16
