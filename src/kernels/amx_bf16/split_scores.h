// Products of stored bf16 rows with a few float32 queries, as exact as float32 ones: keys with the
// queries of attention, pages with what scores them. The stored rows are the first operand as they
// lie; the pieces of four queries are columns of the second one.
#pragma once

#include "kernels/amx_bf16/pieces.h"

namespace sol::kernels::amx_bf16 {

// Column 4 p + r holds piece p of query r, 32 inputs.
inline void arrange_queries(const __m512i (&packed_pieces)[kPieces][kRowsOfPieces], TileWords& to) {
  __m512i x[kPieces][kRowsOfPieces];
  for (int p = 0; p < kPieces; ++p) {
    for (int r = 0; r < kRowsOfPieces; ++r) x[p][r] = packed_pieces[p][r];
    transpose_words(x[p]);  // quarter l of x[p][j]: pair 4 l + j of the four queries
  }
  for (int j = 0; j < 4; ++j) {
    const __m512i none = _mm512_setzero_si512();
    const __m512i a = _mm512_shuffle_i32x4(x[0][j], x[1][j], 0x44),
                  b = _mm512_shuffle_i32x4(x[2][j], none, 0x44),
                  c = _mm512_shuffle_i32x4(x[0][j], x[1][j], 0xee),
                  d = _mm512_shuffle_i32x4(x[2][j], none, 0xee);
    _mm512_store_si512(to[j], _mm512_shuffle_i32x4(a, b, 0x88));
    _mm512_store_si512(to[4 + j], _mm512_shuffle_i32x4(a, b, 0xdd));
    _mm512_store_si512(to[8 + j], _mm512_shuffle_i32x4(c, d, 0x88));
    _mm512_store_si512(to[12 + j], _mm512_shuffle_i32x4(c, d, 0xdd));
  }
}

// 32 inputs of up to four queries; input(r, half) gives 16 of those of query r.
template <typename Input>
inline void split_queries(int queries, const Input& input, TileWords& to) {
  __m512i all[kPieces][kRowsOfPieces];
  for (int r = 0; r < kRowsOfPieces; ++r) {
    Pieces first{zero(), zero(), zero()}, second = first;
    if (r < queries) {
      first = pieces_of(input(r, 0));
      second = pieces_of(input(r, 1));
    }
    all[0][r] = packed(first.high, second.high);
    all[1][r] = packed(first.middle, second.middle);
    all[2][r] = packed(first.low, second.low);
  }
  arrange_queries(all, to);
}

// Up to 16 rows of bf16, `stride` bytes apart.
struct StoredRows {
  const bf16* first;
  int64_t stride;
};

// Shapes of the tiles of multiply_rows(): sums, two first operands of so many rows, the second one.
inline void shape_for_rows(int height) {
  TileShapes shapes;
  for (int tile = 0; tile < 6; ++tile) shapes.set(tile, height, kTileBytes);
  shapes.set(6, kTilePairs, kTileBytes);
  shapes.use();
}

// Products of N times `height` stored rows of `width` elements (a multiple of 32) with queries that
// are arranged 32 inputs at a time: [N * height][16], pieces in columns of their own.
template <int N>
inline void multiply_rows(const StoredRows* rows, int height, int width, const TileWords* queries,
                          float* sums) {
  static_assert(N == 1 || N == 2 || N == 4);
  finish_stores();
  _tile_zero(0);
  if constexpr (N > 1) _tile_zero(1);
  if constexpr (N > 2) _tile_zero(2);
  if constexpr (N > 2) _tile_zero(3);
  for (int i = 0; i < width; i += kTileInputs, ++queries) {
    _tile_loadd(6, queries, kTileBytes);
    _tile_loadd(4, rows[0].first + i, rows[0].stride);
    _tile_dpbf16ps(0, 4, 6);
    if constexpr (N > 1) {
      _tile_loadd(5, rows[1].first + i, rows[1].stride);
      _tile_dpbf16ps(1, 5, 6);
    }
    if constexpr (N > 2) {
      _tile_loadd(4, rows[2].first + i, rows[2].stride);
      _tile_dpbf16ps(2, 4, 6);
      _tile_loadd(5, rows[3].first + i, rows[3].stride);
      _tile_dpbf16ps(3, 5, 6);
    }
  }
  _tile_stored(0, sums, kTileBytes);
  if constexpr (N > 1) _tile_stored(1, sums + 1 * height * kTileHeight, kTileBytes);
  if constexpr (N > 2) _tile_stored(2, sums + 2 * height * kTileHeight, kTileBytes);
  if constexpr (N > 2) _tile_stored(3, sums + 3 * height * kTileHeight, kTileBytes);
}

// Scores of four queries with 16 stored rows.
struct Scores {
  Vec of[kRowsOfPieces];
};
inline Scores sum_pieces(const float* sums) {
  const auto row = [&](int i) { return Vec{_mm512_load_ps(sums + i * kTileHeight)}; };
  __m512i x[4];
  for (int i = 0; i < 4; ++i)
    x[i] = _mm512_castps_si512(fold_lanes(row(i), row(4 + i), row(8 + i), row(12 + i)));
  transpose_words(x);
  Scores scores;
  for (int r = 0; r < kRowsOfPieces; ++r) scores.of[r].v = _mm512_castsi512_ps(x[r]);
  return scores;
}

}  // namespace sol::kernels::amx_bf16
