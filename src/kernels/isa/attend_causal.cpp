// Causal attention of a chunk of positions, as two tiled products per 64 keys with a running
// softmax. Key tiles start at multiples of 64 from position 0 and each row goes through its own
// tiles in order, so that a row's result does not depend on which rows share the call.
#include "kernels/isa/functions.h"
#include "kernels/isa/math.h"
#include "kernels/isa/tile.h"

namespace sol::kernels::SOL_ISA_NAME {
namespace {

constexpr int kKeys = 64;  // attend_causal_scratch() in dispatch.cpp counts on it
constexpr int kKeyVectors = kKeys / kWidth;

struct Call {
  const float* q;
  int64_t row_stride;
  int rows, heads, first_position, dim, padded_dim;
  float scale;
  float* out;

  int position(int i) const { return first_position + i / heads; }  // of flattened row i
  int64_t offset(int i) const {
    return i / heads * row_stride + static_cast<int64_t>(i % heads) * dim;
  }
};

struct Scratch {
  float* keys;     // [dim][kKeys]: the tile's keys, transposed
  float* values;   // [kKeys][padded_dim]
  float* weights;  // [kTileRows][kKeys]
  float* largest;  // [rows * heads]: the running maximum
  float* total;    // [rows * heads]: the running sum of weights
};

Scratch divide(float* scratch, const Call& c) {
  const uint64_t misaligned = reinterpret_cast<uint64_t>(scratch) % 64;
  if (misaligned) scratch += (64 - misaligned) / sizeof(float);
  Scratch s;
  s.keys = scratch;
  s.values = s.keys + static_cast<int64_t>(kKeys) * c.dim;
  s.weights = s.values + static_cast<int64_t>(kKeys) * c.padded_dim;
  s.largest = s.weights + kTileRows * kKeys;
  s.total = s.largest + static_cast<int64_t>(c.rows) * c.heads;
  return s;
}

template <typename T>
const T* token(const CacheView& cache, int j) {
  const std::byte* block = cache.blocks[j / cache.block_tokens] + cache.offset;
  return reinterpret_cast<const T*>(block) +
         static_cast<int64_t>(j % cache.block_tokens) * cache.dim;
}

// Four keys from `key[0..4)` into columns j..j+4 of the transposed tile.
template <typename T>
void transpose_keys(const T* const (&key)[4], int j, int dim, float* keys) {
  for_vectors(dim, [&](int d, auto part) {
    float lanes[4][kWidth];
    for (int r = 0; r < 4; ++r) store(lanes[r], load(key[r] + d, part));
    for (int q = 0; q < kWidth; q += 4) {
      __m128 a = _mm_loadu_ps(lanes[0] + q), b = _mm_loadu_ps(lanes[1] + q);
      __m128 c = _mm_loadu_ps(lanes[2] + q), e = _mm_loadu_ps(lanes[3] + q);
      _MM_TRANSPOSE4_PS(a, b, c, e);
      const __m128 rows[4] = {a, b, c, e};
      for (int l = 0; l < 4 && d + q + l < dim; ++l)
        _mm_storeu_ps(keys + (d + q + l) * kKeys + j, rows[l]);
    }
  });
}

template <typename T>
void load_tile(const CacheView& keys, const CacheView& values, int begin, int count, const Call& c,
               const Scratch& s) {
  for (int j = 0; j < kKeys; j += 4) {
    // Scores of keys that do not exist are masked later, but must not be computed from leftovers:
    // they repeat the last key's.
    const T* key[4];
    for (int r = 0; r < 4; ++r) key[r] = token<T>(keys, begin + smaller(j + r, count - 1));
    transpose_keys(key, j, c.dim, s.keys);
  }
  for (int j = 0; j < count; ++j) {
    const T* value = token<T>(values, begin + j);
    float* row = s.values + static_cast<int64_t>(j) * c.padded_dim;
    for_vectors(c.dim, [&](int d, auto part) { store(row + d, load(value + d, part)); });
  }
}

// Turns one row of scores into weights relative to the row's running maximum; later keys than its
// own position get none. Returns the factor for what was summed before.
float weigh(float* row, int seen, float scale, float& largest, float& total) {
  Vec score[kKeyVectors];
  Vec lanes = set(-kInfinity);
  for (int v = 0; v < kKeyVectors; ++v) {
    const int n = seen - v * kWidth;
    score[v] = load(row + v * kWidth) * set(scale);
    if (n < kWidth) score[v] = select(first_lanes(n > 0 ? n : 0), score[v], set(-kInfinity));
    lanes = max(score[v], lanes);
  }
  const float before = largest;
  const float found = reduce_max(lanes);
  if (found > largest) largest = found;
  // While every score is -infinity there is nothing to be relative to.
  const float base = largest == -kInfinity ? 0.0f : largest;
  Vec sum = zero();
  for (int v = 0; v < kKeyVectors; ++v) {
    const Vec weight = weight_exp(score[v] - set(base));
    store(row + v * kWidth, weight);
    sum = sum + weight;
  }
  float factor[kWidth];
  store(factor, weight_exp(set(before - base)));
  total = __builtin_fmaf(total, factor[0], reduce_add(sum));
  return factor[0];
}

// Rows i..i+R of the flattened (row, head) pairs against the tile of keys that begins at `begin`.
template <int R>
void row_group(const Call& c, const Scratch& s, int begin, int i) {
  const float* q[R];
  const float* weights[R];
  float* out[R];
  for (int r = 0; r < R; ++r) {
    q[r] = c.q + c.offset(i + r);
    out[r] = c.out + c.offset(i + r);
    weights[r] = s.weights + r * kKeys;
  }

  for (int v = 0; v < kKeyVectors; v += kTileVectors) {
    Vec sum[R][kTileVectors];
    for (int r = 0; r < R; ++r)
      for (int u = 0; u < kTileVectors; ++u) sum[r][u] = zero();
    tile(q, c.dim, s.keys + v * kWidth, kKeys, sum);
    for (int r = 0; r < R; ++r)
      for (int u = 0; u < kTileVectors; ++u)
        store(s.weights + r * kKeys + (v + u) * kWidth, sum[r][u]);
  }

  float before[R], after[R];
  int deepest = 0;
  for (int r = 0; r < R; ++r) {
    if (begin == 0) {
      s.largest[i + r] = -kInfinity;
      s.total[i + r] = 0;
    }
    const int seen = smaller(kKeys, c.position(i + r) - begin + 1);
    deepest = seen > deepest ? seen : deepest;
    before[r] = weigh(s.weights + r * kKeys, seen, c.scale, s.largest[i + r], s.total[i + r]);
    const bool last = c.position(i + r) < begin + kKeys;
    after[r] = last ? 1.0f / s.total[i + r] : 1.0f;
  }

  const auto columns = [&]<int V, typename Part>(int d, Part part) {
    Vec sum[R][V];
    for (int r = 0; r < R; ++r)
      for (int v = 0; v < V; ++v)
        sum[r][v] = begin == 0 ? zero() : load(out[r] + d + v * kWidth, part) * set(before[r]);
    tile(weights, deepest, s.values + d, c.padded_dim, sum);
    for (int r = 0; r < R; ++r)
      for (int v = 0; v < V; ++v) store(out[r] + d + v * kWidth, sum[r][v] * set(after[r]), part);
  };
  int d = 0;
  for (; d + kTileVectors * kWidth <= c.dim; d += kTileVectors * kWidth)
    columns.template operator()<kTileVectors>(d, All{});
  for (; d + kWidth <= c.dim; d += kWidth) columns.template operator()<1>(d, All{});
  if (d < c.dim) columns.template operator()<1>(d, First{c.dim - d});
}

template <typename T>
void attend_causal_typed(const Call& c, const CacheView& keys, const CacheView& values,
                         const Scratch& s) {
  const int tokens = c.first_position + c.rows;
  for (int begin = 0; begin < tokens; begin += kKeys) {
    load_tile<T>(keys, values, begin, smaller(kKeys, tokens - begin), c, s);
    // Rows before the tile have no keys in it.
    const int first_row = begin > c.first_position ? begin - c.first_position : 0;
    const int first = first_row * c.heads;
    for_row_groups(c.rows * c.heads - first,
                   [&]<int R>(int i) { row_group<R>(c, s, begin, first + i); });
  }
}

}  // namespace

void attend_causal(const float* q, int64_t row_stride, int rows, int heads, int first_position,
                   const CacheView& keys, const CacheView& values, float scale, float* scratch,
                   float* out) {
  const int dim = keys.dim, padded = (dim + kWidth - 1) / kWidth * kWidth;
  const Call call{q, row_stride, rows, heads, first_position, dim, padded, scale, out};
  const Scratch parts = divide(scratch, call);
  with_type(keys.type,
            [&]<typename T>(const T*) { attend_causal_typed<T>(call, keys, values, parts); });
}

}  // namespace sol::kernels::SOL_ISA_NAME
