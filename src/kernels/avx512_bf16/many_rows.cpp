// Many rows are busy multiplying: panels of the weights are rearranged to pairs of inputs, as the
// instruction wants them, and then meet all rows before the next panel is read.
#include "kernels/avx512_bf16/rows.h"
#include "kernels/isa/tile.h"

namespace sol::kernels::avx512_bf16 {
namespace {

// As wide as the register tile: six rows by four vectors fill 24 of 32 registers with sums. As deep
// as the second-level cache allows (128 KB), since between panels sums go to memory and back: with
// 256 inputs large products took 1.1 to 1.25 times as long.
constexpr int kPanelVectors = 4, kPanelOutputs = kPanelVectors * kWidth;
constexpr int kPanelInputs = 1024;
using Panel = int32_t[kPanelInputs / 2][kPanelOutputs];

// R rows times a panel: into y, or added to it.
template <int R, typename Columns>
[[gnu::flatten]] void multiply_rows(const bf16* x, int64_t x_stride, int pairs, const Panel& panel,
                                    bool add, const Columns& columns, float* y, int64_t y_stride) {
  Vec sum[R][kPanelVectors];
  repeat<R>([&](int r) {
    repeat<kPanelVectors>(
        [&](int v) { sum[r][v] = add ? columns.load_from(y + r * y_stride, v * kWidth) : zero(); });
  });
  for (int p = 0; p < pairs; ++p) {
    __m512i weights[kPanelVectors];
    repeat<kPanelVectors>([&](int v) { weights[v] = _mm512_load_si512(panel[p] + v * kWidth); });
    repeat<R>([&](int r) {
      const __m512i inputs = set_pair(x + r * x_stride + 2 * p);
      repeat<kPanelVectors>([&](int v) { sum[r][v] = add_pairs(sum[r][v], inputs, weights[v]); });
    });
  }
  repeat<R>([&](int r) {
    repeat<kPanelVectors>(
        [&](int v) { columns.store_to(y + r * y_stride, v * kWidth, sum[r][v]); });
  });
}

// All rows times a panel of inputs from first_input on.
void multiply_panel(const RoundedRows& x, int first_input, int pairs, const Panel& panel,
                    int outputs, float* y, int64_t y_stride) {
  for_row_groups(x.count, [&]<int R>(int r) {
    with_columns<kPanelOutputs>(outputs, [&](const auto& columns) {
      multiply_rows<R>(x.rows + r * x.stride + first_input, x.stride, pairs, panel, first_input > 0,
                       columns, y + r * y_stride, y_stride);
    });
  });
}

// --- out_major ---

// The first `n` of eight inputs, zeros behind them.
struct Inputs {
  __mmask8 mask;
  explicit Inputs(int n) : mask(static_cast<__mmask8>((1u << n) - 1u)) {}
  __m128i load(const bf16* p) const { return _mm_maskz_loadu_epi16(mask, p); }
};
struct AllInputs {
  __m128i load(const bf16* p) const { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p)); }
};

constexpr int kGroup = 16, kStep = 8;  // outputs and inputs that are transposed at once

// Four pairs of inputs from `at` on of kGroup rows, to the same pair of all rows.
template <typename Some>
void transpose(const bf16* const (&row)[kGroup], int at, const Some& some, __m512i (&pair)[4]) {
  // Rows j, 4 + j, 8 + j and 12 + j.
  const auto rows = [&](int j) {
    const auto inputs = [&](int r) { return some.load(row[r] + at); };
    __m512i four = _mm512_castsi128_si512(inputs(j));
    four = _mm512_mask_broadcast_i32x4(four, 0x00f0, inputs(4 + j));
    four = _mm512_mask_broadcast_i32x4(four, 0x0f00, inputs(8 + j));
    return _mm512_mask_broadcast_i32x4(four, 0xf000, inputs(12 + j));
  };
  const __m512i a = rows(0), b = rows(1), c = rows(2), d = rows(3);
  const __m512i ab_low = _mm512_unpacklo_epi32(a, b), ab_high = _mm512_unpackhi_epi32(a, b);
  const __m512i cd_low = _mm512_unpacklo_epi32(c, d), cd_high = _mm512_unpackhi_epi32(c, d);
  pair[0] = _mm512_unpacklo_epi64(ab_low, cd_low);
  pair[1] = _mm512_unpackhi_epi64(ab_low, cd_low);
  pair[2] = _mm512_unpacklo_epi64(ab_high, cd_high);
  pair[3] = _mm512_unpackhi_epi64(ab_high, cd_high);
}

// kGroup rows' inputs as columns of a panel from `column` on.
void transpose_group(const bf16* const (&row)[kGroup], int inputs, int column, Panel& panel) {
  __m512i pair[4];
  int i = 0;
  for (; i + kStep <= inputs; i += kStep) {
    transpose(row, i, AllInputs{}, pair);
    for (int j = 0; j < 4; ++j) _mm512_store_si512(panel[i / 2 + j] + column, pair[j]);
  }
  if (i == inputs) return;
  transpose(row, i, Inputs(inputs - i), pair);
  for (int j = 0; i + 2 * j < inputs; ++j) _mm512_store_si512(panel[i / 2 + j] + column, pair[j]);
}

// Weights of `inputs` inputs from i on, for `outputs` outputs from o on.
void arrange(const WeightView& w, int i, int inputs, int o, int outputs, Panel& panel) {
  for (int g = 0; g < outputs; g += kGroup) {
    const bf16* row[kGroup];
    // Outputs that are not there are any other: nobody stores their sums.
    for (int r = 0; r < kGroup; ++r) row[r] = row_of<bf16>(w, o + smaller(g + r, outputs - 1)) + i;
    transpose_group(row, inputs, g, panel);
  }
}

// --- in_major ---

// Weights of `count` channels from k on, for `outputs` outputs from o on.
void arrange(const Channels& channels, int k, int count, int o, int outputs, Panel& panel) {
  constexpr int kAhead = 16, kLine = 32;  // channels, outputs
  for (int c = 0; c < count; c += 2) {
    for (int i = 0; i < 2; ++i) {
      const bf16* ahead =
          row_of<bf16>(channels.w, channels.at(smaller(k + c + i + kAhead, channels.n - 1)));
      for (int line = 0; line < outputs; line += kLine) __builtin_prefetch(ahead + o + line, 0, 2);
    }
    const bf16* first = row_of<bf16>(channels.w, channels.at(k + c)) + o;
    const bf16* second =
        c + 1 < count ? row_of<bf16>(channels.w, channels.at(k + c + 1)) + o : nullptr;
    for (int i = 0; i < outputs; i += kPairOutputs) {
      const Pairs pairs = interleaved(first + i, second ? second + i : nullptr, outputs - i);
      _mm512_store_si512(panel[c / 2] + i, pairs.low);
      _mm512_store_si512(panel[c / 2] + i + kWidth, pairs.high);
    }
  }
}

// Of the weights arrange() makes panels.
template <typename Weights>
void multiply(const Weights& weights, int inputs, const RoundedRows& x, int out_begin, int out_end,
              float* y, int64_t y_stride) {
  alignas(64) Panel panel;
  for (int o = out_begin; o < out_end; o += kPanelOutputs) {
    const int outputs = smaller(kPanelOutputs, out_end - o);
    for (int i = 0; i < inputs; i += kPanelInputs) {
      const int count = smaller(kPanelInputs, inputs - i);
      arrange(weights, i, count, o, outputs, panel);
      multiply_panel(x, i, (count + 1) / 2, panel, outputs, y + o, y_stride);
    }
  }
}

}  // namespace

void many_out_major(const WeightView& w, const RoundedRows& x, int out_begin, int out_end, float* y,
                    int64_t y_stride) {
  multiply(w, w.in, x, out_begin, out_end, y, y_stride);
}

void many_in_major(const Channels& channels, const RoundedRows& x, int out_begin, int out_end,
                   float* y, int64_t y_stride) {
  multiply(channels, channels.n, x, out_begin, out_end, y, y_stride);
}

}  // namespace sol::kernels::avx512_bf16
