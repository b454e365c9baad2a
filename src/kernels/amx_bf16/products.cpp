// Of in_major weights a pair of interleaved rows is a row of a second operand (tiles.h); out_major
// weights are read as they lie, as the first operand, so that the result comes out transposed.
//
// Eight tiles: 0 to 3 hold sums, 4 and 5 first operands, 6 and 7 second ones. Tile 2a + b sums the
// products of 4 + a and 6 + b.
#include "kernels/amx_bf16/products.h"

#include "kernels/amx_bf16/tiles.h"
#include "kernels/isa/channels.h"

namespace sol::kernels::amx_bf16 {
namespace {

// Rows of the first operands and columns of the second ones, of each both; the depth is full.
void shape_tiles(int first_rows, int second_rows, int first_columns, int second_columns) {
  TileShapes shapes;
  const int rows[2] = {first_rows, second_rows}, columns[2] = {first_columns, second_columns};
  for (int i = 0; i < 2; ++i) {
    shapes.set(4 + i, rows[i], kTileBytes);
    shapes.set(6 + i, kTilePairs, columns[i] * 4);
    for (int j = 0; j < 2; ++j) shapes.set(2 * i + j, rows[i], columns[j] * 4);
  }
  shapes.use();
}

// Adds the products of one or two first operands with one or two second ones.
template <bool TwoFirst, bool TwoSecond>
void multiply(const void* a0, const void* a1, int64_t a_stride, const void* b0, const void* b1) {
  finish_stores();
  _tile_loadd(4, a0, a_stride);
  _tile_loadd(6, b0, kTileBytes);
  _tile_dpbf16ps(0, 4, 6);
  if constexpr (TwoSecond) {
    _tile_loadd(7, b1, kTileBytes);
    _tile_dpbf16ps(1, 4, 7);
  }
  if constexpr (TwoFirst) {
    _tile_loadd(5, a1, a_stride);
    _tile_dpbf16ps(2, 5, 6);
    if constexpr (TwoSecond) _tile_dpbf16ps(3, 5, 7);
  }
}

// --- out_major ---

constexpr int kGroupOutputs = 2 * kTileHeight;

// sums: [outputs][16 rows of x], as tiles leave them.
void store_transposed(const float (&sums)[kTileHeight][kTileHeight], int outputs, int rows,
                      float* y, int64_t y_stride) {
  const __m512i column =
      _mm512_mullo_epi32(_mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15),
                         _mm512_set1_epi32(kTileHeight));
  const auto mask = static_cast<__mmask16>(first_of_32(outputs));
  for (int r = 0; r < rows; ++r) {
    const __m512 values =
        _mm512_mask_i32gather_ps(_mm512_setzero_ps(), mask, column, &sums[0][r], sizeof(float));
    _mm512_mask_storeu_ps(y + r * y_stride, mask, values);
  }
}

// `outputs` outputs from o on, kGroupOutputs at most, of all rows of x: more than 16
// outputs if TwoFirst, more than 16 rows if TwoSecond.
template <bool TwoFirst, bool TwoSecond>
void multiply_outputs(const WeightView& w, int o, int outputs, const RowPairs& x, float* y,
                      int64_t y_stride) {
  const int64_t stride = w.stride * static_cast<int64_t>(sizeof(bf16));
  const int64_t group = x.stride / 2 * kTileHeight;
  const auto multiply_at = [&](const bf16* weights, int64_t weight_stride, int i) {
    const int32_t* pairs = x.pairs + i / 2 * kTileHeight;
    multiply<TwoFirst, TwoSecond>(weights, weights + kTileHeight * weight_stride / 2, weight_stride,
                                  pairs, pairs + group);
  };
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  int i = 0;
  for (; i + kTileInputs <= w.in; i += kTileInputs) {
    // The outputs that follow; the processor looks ahead in rows, but not from row to row.
    for (int r = 0; r < outputs; ++r)
      __builtin_prefetch(row_of<bf16>(w, o + kGroupOutputs + r) + i, 0, 2);
    multiply_at(row_of<bf16>(w, o) + i, stride, i);
  }
  if (i < w.in) {
    // What lies behind a row is not to be read, and may be no number.
    alignas(64) bf16 rest[kGroupOutputs][kTileInputs] = {};
    for (int r = 0; r < outputs; ++r)
      _mm512_store_si512(
          rest[r], _mm512_maskz_loadu_epi16(first_of_32(w.in - i), row_of<bf16>(w, o + r) + i));
    multiply_at(rest[0], kTileBytes, i);
  }
  alignas(64) float sums[4][kTileHeight][kTileHeight];
  _tile_stored(0, sums[0], kTileBytes);
  if constexpr (TwoSecond) _tile_stored(1, sums[1], kTileBytes);
  if constexpr (TwoFirst) _tile_stored(2, sums[2], kTileBytes);
  if constexpr (TwoFirst && TwoSecond) _tile_stored(3, sums[3], kTileBytes);
  for (int a = 0; a <= TwoFirst; ++a)
    for (int b = 0; b <= TwoSecond; ++b)
      store_transposed(sums[2 * a + b], smaller(kTileHeight, outputs - a * kTileHeight),
                       smaller(kTileHeight, x.count - b * kTileHeight),
                       y + b * kTileHeight * y_stride + o + a * kTileHeight, y_stride);
}

template <bool TwoSecond>
void multiply_out_major(const WeightView& w, const RowPairs& x, int out_begin, int out_end,
                        float* y, int64_t y_stride) {
  const int first_rows = smaller(kTileHeight, x.count),
            more_rows = TwoSecond ? x.count - kTileHeight : 1;
  shape_tiles(kTileHeight, kTileHeight, first_rows, more_rows);
  int o = out_begin;
  for (; o + kGroupOutputs <= out_end; o += kGroupOutputs)
    multiply_outputs<true, TwoSecond>(w, o, kGroupOutputs, x, y, y_stride);
  const int rest = out_end - o;
  if (rest > kTileHeight) {
    shape_tiles(kTileHeight, rest - kTileHeight, first_rows, more_rows);
    multiply_outputs<true, TwoSecond>(w, o, rest, x, y, y_stride);
  } else if (rest > 0) {
    shape_tiles(rest, 1, first_rows, more_rows);
    multiply_outputs<false, TwoSecond>(w, o, rest, x, y, y_stride);
  }
}

// --- in_major ---

// The weights are read 32 channels at a time along their outputs, in pieces whose sums stay in the
// second-level cache, and interleaved in panels of 32 outputs. More channels would save sums from
// being loaded and stored, but rows often lie a multiple of 4 KB apart, so that their lines share a
// few places in the caches.
constexpr int kPieceOutputs = 1024, kPanelOutputs = 32;
// How far ahead weights are sent for.
constexpr int kOutputsAhead = 8 * kPanelOutputs;

// 16 pairs of channels, for 16 outputs each: groups of four outputs, the even groups or the odd
// ones, as interleaving leaves them.
struct Panel {
  alignas(64) int32_t even[kTilePairs][kTileHeight], odd[kTilePairs][kTileHeight];
};

// Rows of weights of the 32 channels that are being added, and what they are followed by.
struct PanelRows {
  const bf16* row[kTileInputs];
  const bf16* next[kTileInputs];
  int count;
};

// The weights of `outputs` outputs from o on, of rows that are `length` outputs long from `begin`.
void interleave(const PanelRows& rows, int o, int outputs, int begin, int length, Panel& panel) {
  const __mmask32 mask = first_of_32(outputs);
  // At a row's end, the beginning of one that follows.
  const int ahead = o - begin + smaller(kOutputsAhead, length);
  const bool wraps = ahead >= length;
  const auto row = [&](int c) {
    if (c >= rows.count) return _mm512_setzero_si512();
    __builtin_prefetch(
        wraps ? rows.next[c] + begin + (ahead - length) : rows.row[c] + begin + ahead, 0, 2);
    return _mm512_maskz_loadu_epi16(mask, rows.row[c] + o);
  };
  for (int pair = 0; pair < kTilePairs; ++pair) {
    const __m512i a = row(2 * pair), b = row(2 * pair + 1);
    _mm512_store_si512(panel.even[pair], _mm512_unpacklo_epi16(a, b));
    _mm512_store_si512(panel.odd[pair], _mm512_unpackhi_epi16(a, b));
  }
}

// The sums of 16 outputs, in the order of the panels, for all rows.
using Sums = float[kMostRows][kTileHeight];

// Adds a panel's products with x, 32 inputs of all rows, to the sums of its outputs.
template <bool TwoFirst>
void add_panel(const Panel& panel, const bf16* x, int64_t x_stride, bool first, Sums& even,
               Sums& odd) {
  if (first) {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
  } else {
    _tile_loadd(0, even, kTileBytes);
    _tile_loadd(1, odd, kTileBytes);
    if constexpr (TwoFirst) _tile_loadd(2, even[kTileHeight], kTileBytes);
    if constexpr (TwoFirst) _tile_loadd(3, odd[kTileHeight], kTileBytes);
  }
  multiply<TwoFirst, true>(x, x + kTileHeight * x_stride, x_stride * 2, panel.even, panel.odd);
  _tile_stored(0, even, kTileBytes);
  _tile_stored(1, odd, kTileBytes);
  if constexpr (TwoFirst) _tile_stored(2, even[kTileHeight], kTileBytes);
  if constexpr (TwoFirst) _tile_stored(3, odd[kTileHeight], kTileBytes);
}

void store_in_order(const Sums* sums, int outputs, int rows, float* y, int64_t y_stride) {
  for (int o = 0; o < outputs; o += kPanelOutputs) {
    const __mmask32 mask = first_of_32(outputs - o);
    const int tile = o / kTileHeight;
    for (int r = 0; r < rows; ++r) {
      const TwoVecs columns = columns_in_order(load(sums[tile][r]), load(sums[tile + 1][r]));
      float* to = y + r * y_stride + o;
      _mm512_mask_storeu_ps(to, static_cast<__mmask16>(mask), columns.first.v);
      _mm512_mask_storeu_ps(to + kTileHeight, static_cast<__mmask16>(mask >> kTileHeight),
                            columns.second.v);
    }
  }
}

PanelRows panel_rows(const Channels& channels, int k) {
  PanelRows rows;
  rows.count = smaller(kTileInputs, channels.n - k);
  for (int c = 0; c < rows.count; ++c) {
    rows.row[c] = row_of<bf16>(channels.w, channels.at(k + c));
    rows.next[c] =
        row_of<bf16>(channels.w, channels.at(smaller(k + kTileInputs + c, channels.n - 1)));
  }
  return rows;
}

template <bool TwoFirst>
void multiply_in_major(const Channels& channels, const RoundedRows& x, int out_begin, int out_end,
                       float* y, int64_t y_stride) {
  shape_tiles(smaller(kTileHeight, x.count), TwoFirst ? x.count - kTileHeight : 1, kTileHeight,
              kTileHeight);
  Panel panel;
  alignas(64) Sums sums[kPieceOutputs / kTileHeight];
  for (int begin = out_begin; begin < out_end; begin += kPieceOutputs) {
    const int outputs = smaller(kPieceOutputs, out_end - begin);
    for (int k = 0; k < channels.n; k += kTileInputs) {
      const PanelRows rows = panel_rows(channels, k);
      for (int o = 0; o < outputs; o += kPanelOutputs) {
        interleave(rows, begin + o, smaller(kPanelOutputs, outputs - o), begin, outputs, panel);
        Sums* of_panel = sums + o / kTileHeight;
        add_panel<TwoFirst>(panel, x.rows + k, x.stride, k == 0, of_panel[0], of_panel[1]);
      }
    }
    store_in_order(sums, outputs, x.count, y + begin, y_stride);
  }
}

}  // namespace

void out_major(const WeightView& w, const RowPairs& x, int out_begin, int out_end, float* y,
               int64_t y_stride) {
  if (x.count > kTileHeight)
    multiply_out_major<true>(w, x, out_begin, out_end, y, y_stride);
  else
    multiply_out_major<false>(w, x, out_begin, out_end, y, y_stride);
  _tile_release();
}

void in_major(const WeightView& w, const RoundedRows& x, const int* channels, int n, int out_begin,
              int out_end, float* y, int64_t y_stride) {
  const Channels all{w, channels, channels ? n : w.in};
  if (x.count > kTileHeight)
    multiply_in_major<true>(all, x, out_begin, out_end, y, y_stride);
  else
    multiply_in_major<false>(all, x, out_begin, out_end, y, y_stride);
  _tile_release();
}

}  // namespace sol::kernels::amx_bf16
