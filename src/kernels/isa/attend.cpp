// Decoded tokens over cached keys and values. Pieces are cut into steps of four tokens. Rows that
// attend to every step are worked in groups, a load of keys or values serving all of a group; other
// rows go through their own steps one row at a time, where the part's keys and values come from the
// first- or second-level cache for all but the first of them.
#include "kernels/isa/functions.h"
#include "kernels/isa/math.h"

namespace sol::kernels::SOL_ISA_NAME {
namespace {

// At most four tokens.
template <typename T>
struct Step {
  const T* keys;
  const T* values;
  int position, count;
};

// A part's steps. Lists of steps hold their numbers, ascending.
template <typename T>
struct Steps {
  static_assert(kPartTokens <= 256, "step numbers are bytes");
  Step<T> step[kPartTokens];
  uint64_t rows[kPartTokens];
  uint16_t vectors[kPartTokens];  // bits of the vectors of positions that a step lies in
  int count = 0;
  uint64_t everywhere = ~uint64_t{0};  // rows of every step
};

template <typename T>
void cut(const AttendPiece* pieces, int piece_count, int dim, Steps<T>& steps) {
  for (const AttendPiece* piece = pieces; piece < pieces + piece_count; ++piece) {
    const T* keys = static_cast<const T*>(piece->keys);
    const T* values = static_cast<const T*>(piece->values);
    for (int j = 0; j < piece->count; j += 4) {
      const int64_t at = static_cast<int64_t>(j) * dim;
      steps.step[steps.count] = {keys + at, values + at, piece->position + j,
                                 smaller(4, piece->count - j)};
      const int first = piece->position + j, last = first + smaller(4, piece->count - j) - 1;
      steps.vectors[steps.count] =
          static_cast<uint16_t>(1u << first / kWidth | 1u << last / kWidth);
      steps.rows[steps.count++] = piece->rows;
    }
    steps.everywhere &= piece->rows;
  }
}

// Pieces are short and far apart, where the processor's own prefetching starts anew each time.
template <typename T>
void prefetch(const T* rows, int bytes) {
  constexpr int kLine = 64;
  const uint64_t at = reinterpret_cast<uint64_t>(rows);
  for (int i = 0; i < bytes; i += kLine)
    __builtin_prefetch(reinterpret_cast<const void*>(at + static_cast<uint64_t>(i)));
}

constexpr int kAhead = 8;  // steps

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

// Scores of R rows with the keys of listed steps. `scores` is where position 0 of a row lies. The
// last keys done, the first values are sent for.
template <int R, typename T>
void score_steps(const float* const (&q)[R], const Steps<T>& steps, const uint8_t* list, int n,
                 int dim, float* const (&scores)[R]) {
  const int bytes = 4 * dim * static_cast<int>(sizeof(T));
  for (int i = 0; i < n; ++i) {
    const Step<T>& step = steps.step[list[i]];
    if (i + kAhead < n)
      prefetch(steps.step[list[i + kAhead]].keys, bytes);
    else
      prefetch(steps.step[list[i + kAhead - n < n ? i + kAhead - n : i]].values, bytes);
    const T* key[4];
    float* to[R];
    float some[R][4];
    for (int t = 0; t < 4; ++t)
      key[t] = step.keys + static_cast<int64_t>(smaller(t, step.count - 1)) * dim;
    for (int r = 0; r < R; ++r) to[r] = step.count == 4 ? scores[r] + step.position : some[r];
    score_four(q, key, dim, to);
    if (step.count == 4) continue;
    for (int r = 0; r < R; ++r)
      for (int t = 0; t < step.count; ++t) scores[r][step.position + t] = some[r][t];
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
    const Vec weight = weight_exp(load(at) - base);
    store(at, weight);
    sum = sum + weight;
  }
  *total = reduce_add(sum);
}

// Weighted values of listed steps: V vectors of R rows, from column d on.
template <int R, int V, typename T, typename Part>
void mix(const float* const (&weights)[R], const Steps<T>& steps, const uint8_t* list, int n,
         int dim, int d, Part part, float* const (&out)[R]) {
  Vec sum[R][V];
  for (int r = 0; r < R; ++r)
    for (int v = 0; v < V; ++v) sum[r][v] = zero();
  const int bytes = 4 * dim * static_cast<int>(sizeof(T));
  for (int i = 0; i < n; ++i) {
    const Step<T>& step = steps.step[list[i]];
    if (d == 0 && i + kAhead < n) prefetch(steps.step[list[i + kAhead]].values, bytes);
    const T* value = step.values + d;
    for (int j = 0; j < step.count; ++j, value += dim) {
      Vec x[V];
      for (int v = 0; v < V; ++v) x[v] = load(value + v * kWidth, part);
      for (int r = 0; r < R; ++r) {
        const Vec w = set(weights[r][step.position + j]);
        for (int v = 0; v < V; ++v) sum[r][v] = fma(w, x[v], sum[r][v]);
      }
    }
  }
  for (int r = 0; r < R; ++r)
    for (int v = 0; v < V; ++v) store(out[r] + d + v * kWidth, sum[r][v], part);
}

template <int R, typename T>
void mix_steps(const float* const (&weights)[R], const Steps<T>& steps, const uint8_t* list, int n,
               int dim, float* const (&out)[R]) {
  constexpr int kVectors = R == 1 ? 2 * kMixVectors : kMixVectors;
  int d = 0;
  for (; d + kVectors * kWidth <= dim; d += kVectors * kWidth)
    mix<R, kVectors>(weights, steps, list, n, dim, d, All{}, out);
  for (; d + 2 * kWidth <= dim; d += 2 * kWidth)
    mix<R, 2>(weights, steps, list, n, dim, d, All{}, out);
  for (; d + kWidth <= dim; d += kWidth) mix<R, 1>(weights, steps, list, n, dim, d, All{}, out);
  if (d < dim) mix<R, 1>(weights, steps, list, n, dim, d, First{dim - d}, out);
}

// The steps that the rows with these bits attend to, and the vectors of positions they lie in.
struct Attended {
  uint8_t list[kPartTokens];
  int count = 0;
  uint32_t touched = 0;
};

template <typename T>
void find_steps(const Steps<T>& steps, uint64_t row, Attended& found) {
  int count = 0;
  uint32_t touched = 0;
  for (int s = 0; s < steps.count; ++s) {  // without branches: who attends to what is a coin's toss
    const bool mine = steps.rows[s] & row;
    found.list[count] = static_cast<uint8_t>(s);
    count += mine;
    touched |= mine ? steps.vectors[s] : 0u;
  }
  found.count = count;
  found.touched = touched;
}

// R rows that attend to the same steps.
template <int R, typename T>
void attend_rows(const AttendRow* rows, const uint8_t (&members)[R], const Steps<T>& steps,
                 const Attended& attended, int dim, float scale, float* scratch) {
  const float* q[R];
  float* scores[R];
  float* out[R];
  const float* weights[R];
  for (int r = 0; r < R; ++r) {
    const AttendRow& row = rows[members[r]];
    q[r] = row.q;
    out[r] = row.partial;
    weights[r] = scores[r] = scratch + r * kPartTokens;
    for (int i = 0; i < kPartTokens; i += kWidth) store(scores[r] + i, set(-kInfinity));
  }
  for_groups<kScoreRows>(R, [&]<int G>(int first) {
    const float* queries[G];
    float* to[G];
    for (int r = 0; r < G; ++r) {
      queries[r] = q[first + r];
      to[r] = scores[first + r];
    }
    score_steps<G>(queries, steps, attended.list, attended.count, dim, to);
  });
  for (int r = 0; r < R; ++r)
    weigh(scores[r], attended.touched, scale, out[r] + dim, out[r] + dim + 1);
  mix_steps<R>(weights, steps, attended.list, attended.count, dim, out);
}

template <typename T>
void attend_part_typed(const AttendRow* rows, int row_count, int dim, const AttendPiece* pieces,
                       int piece_count, float scale, float* scratch) {
  Steps<T> steps;
  cut(pieces, piece_count, dim, steps);
  Attended all;
  find_steps(steps, ~uint64_t{0}, all);
  uint8_t together[kPartRows];
  int together_count = 0;
  for (int r = 0; r < row_count; ++r) {
    if (steps.everywhere >> r & 1) {
      together[together_count++] = static_cast<uint8_t>(r);
      continue;
    }
    Attended own;
    find_steps(steps, uint64_t{1} << r, own);
    const uint8_t member[1] = {static_cast<uint8_t>(r)};
    attend_rows<1>(rows, member, steps, own, dim, scale, scratch);
  }
  for_groups<kMixRows>(together_count, [&]<int R>(int m) {
    uint8_t members[R];
    for (int r = 0; r < R; ++r) members[r] = together[m + r];
    attend_rows<R>(rows, members, steps, all, dim, scale, scratch);
  });
}

}  // namespace

void attend_part(const AttendRow* rows, int row_count, int dim, ElementType type,
                 const AttendPiece* pieces, int piece_count, float scale, float* scratch) {
  static_assert(kPartTokens / kWidth <= 16, "bits of Steps::vectors");
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
    const Vec factor = weight_exp(set(partial[dim]) - base);
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
