// Decoded tokens over cached keys and values in float32.
#include "kernels/isa/attend_rows.h"
#include "kernels/isa/functions.h"

namespace sol::kernels::SOL_ISA_NAME {
namespace {

// Products in float32.
template <typename T>
struct Float32Products {
  using Stored = T;
  using Factor = float;

  template <int R>
  class Queries {
   public:
    Queries(const AttendRow* rows, int) : rows_(rows) {}
    const float* of(int r) const { return rows_[r].q; }

   private:
    const AttendRow* rows_;
  };

  // Scores of R rows with four keys.
  template <int R>
  static void score_four(const float* const (&q)[R], const T* const (&key)[4], int dim,
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

  static void narrow_weights(float*) {}

  // Adds weighted values of listed steps: V vectors of R rows, from column d on.
  template <int R, int V, typename Part>
  static void mix(const float* const (&weights)[R], const Steps<T>& steps, const StepList& list,
                  int dim, int d, Part part, float* const (&out)[R], SendAhead& ahead) {
    Vec sum[R][V];
    for (int r = 0; r < R; ++r)
      for (int v = 0; v < V; ++v) sum[r][v] = load(out[r] + d + v * kWidth, part);
    for (int i = 0; i < list.count; ++i) {
      const Step<T>& step = steps.step[list.number[i]];
      ahead.send(4);
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

  template <int R>
  static void mix_steps(const float* const (&weights)[R], const Steps<T>& steps,
                        const StepList& list, int dim, float* const (&out)[R], SendAhead& ahead) {
    constexpr int kVectors = R == 1 ? 2 * kMixVectors : kMixVectors;
    int d = 0;
    for (; d + kVectors * kWidth <= dim; d += kVectors * kWidth)
      mix<R, kVectors>(weights, steps, list, dim, d, All{}, out, ahead);
    for (; d + 2 * kWidth <= dim; d += 2 * kWidth)
      mix<R, 2>(weights, steps, list, dim, d, All{}, out, ahead);
    for (; d + kWidth <= dim; d += kWidth)
      mix<R, 1>(weights, steps, list, dim, d, All{}, out, ahead);
    if (d < dim) mix<R, 1>(weights, steps, list, dim, d, First{dim - d}, out, ahead);
  }
};

}  // namespace

void attend_part(const AttendRow* rows, int row_count, int dim, ElementType type,
                 const AttendPiece* pieces, int piece_count, int shared, const NextPieces& next,
                 float scale, float* scratch) {
  with_type(type, [&]<typename T>(const T*) {
    attend_part_by<Float32Products<T>>(rows, row_count, dim, pieces, piece_count, shared, next,
                                       scale, scratch);
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
