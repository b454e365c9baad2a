// Decoded tokens over cached keys and values on tiles: the tokens of all pieces are listed, four
// rows at a time go over those that any of them attends to, 32 by 32. Keys are a first operand, as
// they lie where 16 lie together; of values pairs of tokens are interleaved, once for all rows.
#include "kernels/amx_bf16/attend.h"

#include "kernels/amx_bf16/split_scores.h"
#include "kernels/isa/math.h"
#include "kernels/isa/send_ahead.h"

namespace sol::kernels::amx_bf16 {
namespace {

constexpr int kRows = kRowsOfPieces;
constexpr int kStep = kTileInputs;  // tokens
constexpr int kMostSteps = kMostTokens / kStep;
constexpr int kPanel = 2 * kTileHeight;          // columns of values that are interleaved together
constexpr int kPassTiles = 4;                    // of values' columns, whose sums stay in tiles
constexpr int kPass = kPassTiles * kTileHeight;  // columns

// From a row of a cache to the seven behind it, in bytes.
__m512i row_offsets(int dim) {
  const __m512i numbers = _mm512_setr_epi64(0, 1, 2, 3, 4, 5, 6, 7);
  return _mm512_mullo_epi64(numbers, _mm512_set1_epi64(static_cast<int64_t>(sizeof(bf16)) * dim));
}

// Returns how many there are; behind them up to a whole step tokens that nobody attends to.
int list_tokens(const AttendPiece* pieces, int piece_count, int dim, AttendMemory& m) {
  const auto row_bytes = static_cast<int64_t>(sizeof(bf16)) * dim;
  const __m512i offsets = row_offsets(dim);
  const auto put = [&](const void* first, int j, void* to) {
    const int64_t at = reinterpret_cast<int64_t>(first) + j * row_bytes;
    _mm512_storeu_si512(to, _mm512_add_epi64(_mm512_set1_epi64(at), offsets));
  };
  int n = 0;
  for (const AttendPiece* piece = pieces; piece < pieces + piece_count; ++piece) {
    for (int j = 0; j < piece->count; j += 8) {
      put(piece->keys, j, m.token_keys + n + j);
      put(piece->values, j, m.token_values + n + j);
      _mm512_storeu_si512(m.token_rows + n + j,
                          _mm512_set1_epi64(static_cast<int64_t>(piece->rows)));
    }
    n += piece->count;
  }
  for (int i = n; i % kStep; ++i) {
    m.token_keys[i] = m.token_values[i] = m.none;
    m.token_rows[i] = 0;
  }
  return n;
}

// The steps that rows attend to, and the tokens of each: bit i of tokens[r][k] is token i of step
// k.
struct Steps {
  int count = 0;
  uint8_t number[kMostSteps];
  uint32_t tokens[kRows][kMostSteps];
};

Steps steps_of(const AttendMemory& m, int token_count, int first_row, int rows) {
  Steps steps;
  for (int s = 0; s * kStep < token_count; ++s) {
    uint32_t any = 0;
    for (int r = 0; r < kRows; ++r) {
      uint32_t bits = 0;
      if (r < rows)
        for (int i = 0; i < kStep; i += 8)
          bits |= test_eight(m.token_rows + s * kStep + i, uint64_t{1} << (first_row + r)) << i;
      steps.tokens[r][steps.count] = bits;
      any |= bits;
    }
    steps.number[steps.count] = static_cast<uint8_t>(s);
    steps.count += any != 0;
  }
  return steps;
}

// 16 keys as they lie, or gathered.
StoredRows keys_at(const bf16* const* keys, int dim, bf16* gathered) {
  const auto row_bytes = static_cast<int64_t>(sizeof(bf16)) * dim;
  const __m512i offsets = row_offsets(dim);
  const auto lies_at = [&](const bf16* const* eight, const bf16* first) {
    const __m512i expected =
        _mm512_add_epi64(_mm512_set1_epi64(reinterpret_cast<int64_t>(first)), offsets);
    return _mm512_cmpeq_epi64_mask(_mm512_loadu_si512(eight), expected) == 0xff;
  };
  if (lies_at(keys, keys[0]) && lies_at(keys + 8, keys[0] + 8 * dim)) return {keys[0], row_bytes};
  for (int t = 0; t < kTileHeight; ++t)
    for (int i = 0; i < dim; i += kTileInputs)
      _mm512_store_si512(gathered + t * dim + i, _mm512_loadu_si512(keys[t] + i));
  return {gathered, row_bytes};
}

// Scores of N steps for all rows; -infinity where a row does not attend.
template <int N>
void score_steps(const Steps& steps, int first, int dim, float scale, Vec (&largest)[kRows],
                 SendAhead& ahead, AttendMemory& m) {
  StoredRows keys[2 * N];
  for (int g = 0; g < 2 * N; ++g)
    keys[g] = keys_at(m.token_keys + steps.number[first + g / 2] * kStep + g % 2 * kTileHeight, dim,
                      m.gathered[g]);
  multiply_rows<2 * N>(keys, kTileHeight, dim, m.queries, m.sums[0][0]);
  for (int g = 0; g < 2 * N; ++g) {
    const int step = first + g / 2, half = g % 2 * kTileHeight;
    ahead.send(8);
    const Scores scores = sum_pieces(m.sums[g][0]);
    for (int r = 0; r < kRows; ++r) {
      const Vec score = select(lanes_of(steps.tokens[r][step] >> half), scores.of[r] * set(scale),
                               set(-kInfinity));
      store(m.scores[r] + step * kStep + half, score);
      largest[r] = max(score, largest[r]);
    }
  }
}

// Scores to weights, in pieces.
void weigh(const Steps& steps, int r, float largest, float* total, SendAhead& ahead,
           AttendMemory& m) {
  // While every score is -infinity there is nothing to be relative to.
  const Vec base = set(largest == -kInfinity ? 0.0f : largest);
  Vec sum = zero();
  for (int k = 0; k < steps.count; ++k) {
    ahead.send(4);
    const float* score = m.scores[r] + k * kStep;
    const Vec a = weight_exp(load(score) - base), b = weight_exp(load(score + kWidth) - base);
    sum = sum + a;
    sum = sum + b;
    const Pieces x = pieces_of_finite(a), y = pieces_of_finite(b);
    _mm512_store_si512(m.weights[k][r], packed(x.high, y.high));
    _mm512_store_si512(m.weights[k][kRows + r], packed(x.middle, y.middle));
    _mm512_store_si512(m.weights[k][2 * kRows + r], packed(x.low, y.low));
  }
  *total = reduce_add(sum);
}

// Values of one step's tokens, columns [d, d + 32): a second operand for the columns of even groups
// of four, and one for the odd ones.
void interleave(const bf16* const* values, int d, TileWords* to, SendAhead& ahead) {
  for (int pair = 0; pair < kTilePairs; ++pair) {
    if (pair % 4 == 0) ahead.send(4);
    const __m512i a = _mm512_loadu_si512(values[2 * pair] + d);
    const __m512i b = _mm512_loadu_si512(values[2 * pair + 1] + d);
    _mm512_store_si512(to[0][pair], _mm512_unpacklo_epi16(a, b));
    _mm512_store_si512(to[1][pair], _mm512_unpackhi_epi16(a, b));
  }
}

template <int Tiles>
void add_values(const bf16* weights, const TileWords* values) {
  finish_stores();
  _tile_loadd(4, weights, kTileBytes);
  _tile_loadd(6, values[0], kTileBytes);
  _tile_dpbf16ps(0, 4, 6);
  _tile_loadd(7, values[1], kTileBytes);
  _tile_dpbf16ps(1, 4, 7);
  if constexpr (Tiles > 2) {
    _tile_loadd(6, values[2], kTileBytes);
    _tile_dpbf16ps(2, 4, 6);
    _tile_loadd(7, values[3], kTileBytes);
    _tile_dpbf16ps(3, 4, 7);
  }
}

// 32 columns of a row from two tiles of sums.
void store_columns(const TileSums* sums, int r, float* to) {
  const auto sum = [&](const TileSums& tile) {
    const Vec low = load(tile[2 * kRows + r]), middle = load(tile[kRows + r]);
    return load(tile[r]) + (middle + low);
  };
  const TwoVecs columns = columns_in_order(sum(sums[0]), sum(sums[1]));
  store(to, columns.first);
  store(to + kWidth, columns.second);
}

// Weighted sums of columns [d, d + 16 * Tiles) of the values. Bit s of `made`: the operands of
// these columns of step s are there already. Where nobody needs them again (`once`) they stay in
// the first-level cache.
template <int Tiles>
void mix(const Steps& steps, const AttendRow* rows, int row_count, int d, bool once, uint32_t& made,
         SendAhead& ahead, AttendMemory& m) {
  _tile_zero(0);
  _tile_zero(1);
  if constexpr (Tiles > 2) {
    _tile_zero(2);
    _tile_zero(3);
  }
  const auto values_of = [&](int k) {
    return once ? m.values[k % 2] : m.values[steps.number[k]] + d / kTileHeight;
  };
  const auto prepare = [&](int k) {
    const int step = steps.number[k];
    if (made >> step & 1) return;
    for (int i = 0; i < Tiles; i += 2)
      interleave(m.token_values + step * kStep, d + i * kTileHeight, values_of(k) + i, ahead);
    made |= 1u << step;
  };
  // One step ahead: what was only just stored is slow to be loaded into tiles.
  if (steps.count > 0) prepare(0);
  for (int k = 0; k < steps.count; ++k) {
    if (k + 1 < steps.count) prepare(k + 1);
    add_values<Tiles>(m.weights[k][0], values_of(k));
  }
  _tile_stored(0, m.sums[0], kTileBytes);
  _tile_stored(1, m.sums[1], kTileBytes);
  if constexpr (Tiles > 2) {
    _tile_stored(2, m.sums[2], kTileBytes);
    _tile_stored(3, m.sums[3], kTileBytes);
  }
  for (int r = 0; r < row_count; ++r)
    for (int i = 0; i < Tiles; i += 2)
      store_columns(m.sums + i, r, rows[r].partial + d + i * kTileHeight);
}

void shape_tiles() {
  TileShapes shapes;
  for (int tile = 0; tile < 8; ++tile) shapes.set(tile, kTileHeight, kTileBytes);
  shapes.use();
}

}  // namespace

void attend_part(const AttendRow* rows, int row_count, int dim, const AttendPiece* pieces,
                 int piece_count, const NextPieces& next, float scale, AttendMemory& m) {
  const int row_bytes = dim * static_cast<int>(sizeof(bf16));
  SendAhead keys_ahead(next, &AttendPiece::keys, row_bytes);
  SendAhead values_ahead(next, &AttendPiece::values, row_bytes);
  const int tokens = list_tokens(pieces, piece_count, dim, m);
  const bool once = row_count <= kRows;
  uint32_t made[kMostDim / kPass] = {};
  shape_tiles();
  for (int first = 0; first < row_count; first += kRows) {
    const AttendRow* four = rows + first;
    const int count = smaller(kRows, row_count - first);
    const Steps steps = steps_of(m, tokens, first, count);
    for (int i = 0; i < dim; i += kTileInputs)
      split_queries(
          count, [&](int r, int half) { return load(four[r].q + i + half * kWidth); },
          m.queries[i / kTileInputs]);
    Vec largest[kRows] = {set(-kInfinity), set(-kInfinity), set(-kInfinity), set(-kInfinity)};
    for_groups<2>(steps.count, [&]<int N>(int k) {
      score_steps<N>(steps, k, dim, scale, largest, keys_ahead, m);
    });
    for (int r = 0; r < kRows; ++r) {
      const float most = _mm512_reduce_max_ps(largest[r].v);
      float total;
      weigh(steps, r, most, &total, keys_ahead, m);
      if (r >= count) continue;
      four[r].partial[dim] = most;
      four[r].partial[dim + 1] = total;
    }
    for (int d = 0; d < dim; d += kPass) {
      uint32_t& of_pass = made[d / kPass];
      if (d + kPass <= dim)
        mix<4>(steps, four, count, d, once, of_pass, values_ahead, m);
      else
        mix<2>(steps, four, count, d, once, of_pass, values_ahead, m);
    }
  }
  _tile_release();
}

}  // namespace sol::kernels::amx_bf16
