// Decoded tokens over cached keys and values: one pass over a piece of them serves every row that
// attends to it.
#include "kernels/isa/functions.h"
#include "kernels/isa/math.h"

namespace sol::kernels::SOL_ISA_NAME {
namespace {

// Reads ahead of the arithmetic: pieces are short and far apart, where the processor's own
// prefetching starts anew each time. Walks all keys, then all values, in the order of their use.
class ReadAhead {
 public:
  ReadAhead(const AttendPiece* pieces, int count, int row_bytes)
      : first_(pieces), end_(pieces + count), row_bytes_(row_bytes) {
    enter(pieces);
    advance(kAhead);
  }
  void advance(int64_t bytes) {
    while (bytes > 0 && at_) {
      for (; bytes > 0 && at_ < stop_; at_ += kLine, bytes -= kLine)
        __builtin_prefetch(reinterpret_cast<const void*>(at_));
      if (at_ >= stop_) enter(piece_ + 1);
    }
  }

 private:
  static constexpr int64_t kAhead = 4096, kLine = 64;

  void enter(const AttendPiece* piece) {
    if (piece == end_ && !values_) {
      values_ = true;
      piece = first_;
    }
    piece_ = piece;
    at_ = 0;
    if (piece == end_) return;
    at_ = reinterpret_cast<uint64_t>(values_ ? piece->values : piece->keys);
    stop_ = at_ + static_cast<uint64_t>(piece->count) * static_cast<uint64_t>(row_bytes_);
  }

  const AttendPiece* first_;
  const AttendPiece* end_;
  int row_bytes_;
  bool values_ = false;
  const AttendPiece* piece_ = nullptr;
  uint64_t at_ = 0, stop_ = 0;  // 0: nothing left
};

// The rows whose bits are set; their number.
int list_rows(uint64_t bits, uint8_t (&rows)[kPartRows]) {
  int n = 0;
  for (; bits; bits &= bits - 1) rows[n++] = static_cast<uint8_t>(__builtin_ctzll(bits));
  return n;
}

// Scores of R rows with four keys.
template <int R, typename T>
void score_four(const float* const (&q)[R], const T* const (&key)[4], int dim,
                float* const (&score)[R]) {
  Vec sum[R][4];
  for (int r = 0; r < R; ++r)
    for (int t = 0; t < 4; ++t) sum[r][t] = zero();
  for_vectors(dim, [&](int d, auto part) {
    Vec k[4];
    for (int t = 0; t < 4; ++t) k[t] = load(key[t] + d, part);
    for (int r = 0; r < R; ++r) {
      const Vec x = load(q[r] + d, part);
      for (int t = 0; t < 4; ++t) sum[r][t] = fma(x, k[t], sum[r][t]);
    }
  });
  reduce_add4(sum, score);
}

template <typename T>
void score_piece(const AttendRow* rows, const uint8_t* members, int member_count, int dim,
                 const AttendPiece& piece, float* scores, ReadAhead& ahead) {
  const T* first = static_cast<const T*>(piece.keys);
  for (int j = 0; j < piece.count; j += 4) {
    const int count = smaller(4, piece.count - j);
    ahead.advance(static_cast<int64_t>(sizeof(T)) * count * dim);
    const T* key[4];
    for (int t = 0; t < 4; ++t)
      key[t] = first + static_cast<int64_t>(j + smaller(t, count - 1)) * dim;
    for_groups<kScoreRows>(member_count, [&]<int R>(int m) {
      const float* q[R];
      float* score[R];
      float some[R][4];
      for (int r = 0; r < R; ++r) {
        q[r] = rows[members[m + r]].q;
        float* at = scores + members[m + r] * kPartTokens + piece.position + j;
        score[r] = count == 4 ? at : some[r];
      }
      score_four(q, key, dim, score);
      for (int r = 0; count < 4 && r < R; ++r) {
        float* at = scores + members[m + r] * kPartTokens + piece.position + j;
        for (int t = 0; t < count; ++t) at[t] = some[r][t];
      }
    });
  }
}

// Turns a row's scores into weights. Vectors that none of its tokens lie in (bits of `touched`) are
// left alone: their weights are zero, and nobody reads them.
void weigh(float* scores, uint32_t touched, float scale, float* largest, float* total) {
  Vec lanes = set(-kInfinity);
  for (uint32_t bits = touched; bits; bits &= bits - 1) {
    float* at = scores + __builtin_ctz(bits) * kWidth;
    const Vec score = load(at) * set(scale);
    store(at, score);
    lanes = max(score, lanes);
  }
  *largest = reduce_max(lanes);
  // While every score is -infinity there is nothing to be relative to.
  const Vec base = set(*largest == -kInfinity ? 0.0f : *largest);
  Vec sum = zero();
  for (uint32_t bits = touched; bits; bits &= bits - 1) {
    float* at = scores + __builtin_ctz(bits) * kWidth;
    const Vec weight = exp(load(at) - base);
    store(at, weight);
    sum = sum + weight;
  }
  *total = reduce_add(sum);
}

// Adds a piece's weighted values to V vectors of R rows, from column d on.
template <int R, int V, typename T, typename Part>
void mix(const float* const (&weight)[R], const T* value, int count, int dim, int d, Part part,
         float* const (&out)[R]) {
  Vec sum[R][V];
  for (int r = 0; r < R; ++r)
    for (int v = 0; v < V; ++v) sum[r][v] = load(out[r] + d + v * kWidth, part);
  value += d;
  for (int j = 0; j < count; ++j, value += dim) {
    Vec x[V];
    for (int v = 0; v < V; ++v) x[v] = load(value + v * kWidth, part);
    for (int r = 0; r < R; ++r) {
      const Vec w = set(weight[r][j]);
      for (int v = 0; v < V; ++v) sum[r][v] = fma(w, x[v], sum[r][v]);
    }
  }
  for (int r = 0; r < R; ++r)
    for (int v = 0; v < V; ++v) store(out[r] + d + v * kWidth, sum[r][v], part);
}

template <typename T>
void mix_piece(const AttendRow* rows, const uint8_t* members, int member_count, int dim,
               const AttendPiece& piece, const float* weights, ReadAhead& ahead) {
  const T* values = static_cast<const T*>(piece.values);
  ahead.advance(static_cast<int64_t>(sizeof(T)) * piece.count * dim);
  for_groups<kMixRows>(member_count, [&]<int R>(int m) {
    const float* weight[R];
    float* out[R];
    for (int r = 0; r < R; ++r) {
      weight[r] = weights + members[m + r] * kPartTokens + piece.position;
      out[r] = rows[members[m + r]].partial;
    }
    int d = 0;
    for (; d + kMixVectors * kWidth <= dim; d += kMixVectors * kWidth)
      mix<R, kMixVectors>(weight, values, piece.count, dim, d, All{}, out);
    for (; d + kWidth <= dim; d += kWidth)
      mix<R, 1>(weight, values, piece.count, dim, d, All{}, out);
    if (d < dim) mix<R, 1>(weight, values, piece.count, dim, d, First{dim - d}, out);
  });
}

template <typename T>
void attend_part_typed(const AttendRow* rows, int row_count, int dim, const AttendPiece* pieces,
                       int piece_count, float scale, float* scratch) {
  uint32_t touched[kPartRows] = {};
  uint8_t members[kPartRows];
  ReadAhead ahead(pieces, piece_count, dim * static_cast<int>(sizeof(T)));
  for (int i = 0; i < row_count * kPartTokens; i += kWidth) store(scratch + i, set(-kInfinity));
  for (const AttendPiece* piece = pieces; piece < pieces + piece_count; ++piece) {
    const int n = list_rows(piece->rows, members);
    score_piece<T>(rows, members, n, dim, *piece, scratch, ahead);
    const int first = piece->position / kWidth;
    const int last = (piece->position + piece->count - 1) / kWidth;
    const uint32_t bits = (2u << last) - (1u << first);
    for (int m = 0; m < n; ++m) touched[members[m]] |= bits;
  }
  for (int r = 0; r < row_count; ++r) {
    float* partial = rows[r].partial;
    for_vectors(dim, [&](int d, auto part) { store(partial + d, zero(), part); });
    weigh(scratch + r * kPartTokens, touched[r], scale, partial + dim, partial + dim + 1);
  }
  for (const AttendPiece* piece = pieces; piece < pieces + piece_count; ++piece) {
    const int n = list_rows(piece->rows, members);
    mix_piece<T>(rows, members, n, dim, *piece, scratch, ahead);
  }
}

}  // namespace

void attend_part(const AttendRow* rows, int row_count, int dim, ElementType type,
                 const AttendPiece* pieces, int piece_count, float scale, float* scratch) {
  static_assert(kPartTokens / kWidth < 32);
  with_type(type, [&]<typename T>(const T*) {
    attend_part_typed<T>(rows, row_count, dim, pieces, piece_count, scale, scratch);
  });
}

void merge_parts(const float* partials, int parts, int64_t stride, int dim, float* out) {
  float largest = -kInfinity;
  for (int i = 0; i < parts; ++i) {
    const float here = partials[i * stride + dim];
    if (here > largest) largest = here;
  }
  const Vec base = set(largest == -kInfinity ? 0.0f : largest);
  float total = 0;
  for_vectors(dim, [&](int d, auto part) { store(out + d, zero(), part); });
  for (int i = 0; i < parts; ++i) {
    const float* partial = partials + i * stride;
    const Vec factor = exp(set(partial[dim]) - base);
    float lanes[kWidth];
    store(lanes, factor);
    total = __builtin_fmaf(partial[dim + 1], lanes[0], total);
    for_vectors(dim, [&](int d, auto part) {
      store(out + d, fma(load(partial + d, part), factor, load(out + d, part)), part);
    });
  }
  const Vec share = set(1.0f / total);
  for_vectors(dim, [&](int d, auto part) { store(out + d, load(out + d, part) * share, part); });
}

}  // namespace sol::kernels::SOL_ISA_NAME
