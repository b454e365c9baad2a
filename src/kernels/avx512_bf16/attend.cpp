// Decoded tokens over bf16 keys and values: the instruction multiplies two numbers of a key at a
// time, and the values of two tokens, whose columns are interleaved as they are loaded.
#include "kernels/avx512_bf16/attention.h"
#include "kernels/avx512_bf16/pairs.h"
#include "kernels/isa/attend_rows.h"

namespace sol::kernels::avx512_bf16 {
namespace {

// 32 columns of two tokens' values as pairs: columns of even groups of four, and of odd ones.
struct ValuePairs {
  __m512i even, odd;
};
inline ValuePairs value_pairs(__m512i a, __m512i b) {
  return {_mm512_unpacklo_epi16(a, b), _mm512_unpackhi_epi16(a, b)};
}

// Sums of 32 columns, in that order.
struct OutputSums {
  Vec even, odd;
};
inline void add_outputs(const OutputSums& sums, float* to) {
  const TwoVecs columns = columns_in_order(sums.even, sums.odd);
  store(to, load(to) + columns.first);
  store(to + kWidth, load(to + kWidth) + columns.second);
}

struct PairProducts {
  using Stored = bf16;
  using Factor = bf16;

  template <int R>
  class Queries {
   public:
    Queries(const AttendRow* rows, int dim) {
      for (int r = 0; r < R; ++r)
        for (int d = 0; d < dim; d += kPairedInputs)
          _mm512_store_si512(rounded_[r] + d,
                             rounded(load(rows[r].q + d), load(rows[r].q + d + kWidth)));
    }
    const bf16* of(int r) const { return rounded_[r]; }

   private:
    alignas(64) bf16 rounded_[R][kMostDim];
  };

  template <int R>
  static void score_four(const bf16* const (&q)[R], const bf16* const (&key)[4], int dim,
                         float* const (&score)[R]) {
    dot_four<1>(q, key, dim, score);
  }

  static void narrow_weights(float* weights) {
    for (int i = 0; i < kPartTokens; i += 2 * kWidth)
      _mm512_storeu_si512(reinterpret_cast<bf16*>(weights) + i,
                          rounded(load(weights + i), load(weights + i + kWidth)));
  }

  // C times 32 columns of R rows from column d on.
  template <int R, int C>
  static void mix(const bf16* const (&weights)[R], const Steps<bf16>& steps, const StepList& list,
                  int dim, int d, float* const (&out)[R], SendAhead& ahead) {
    OutputSums sum[R][C];
    repeat<R>([&](int r) { repeat<C>([&](int c) { sum[r][c] = {zero(), zero()}; }); });
    // Two tokens' values, the second's perhaps none, times each row's pair of weights.
    const auto add = [&](const bf16* first, const bf16* second, auto weights_of) {
      ValuePairs x[C];
      repeat<C>([&](int c) {
        const int at = c * kPairedInputs;
        x[c] = value_pairs(_mm512_loadu_si512(first + at),
                           second ? _mm512_loadu_si512(second + at) : _mm512_setzero_si512());
      });
      repeat<R>([&](int r) {
        const __m512i pair = weights_of(r);
        repeat<C>([&](int c) {
          sum[r][c].even = add_pairs(sum[r][c].even, pair, x[c].even);
          sum[r][c].odd = add_pairs(sum[r][c].odd, pair, x[c].odd);
        });
      });
    };
    for (int i = 0; i < list.count; ++i) {
      const Step<bf16>& step = steps.step[list.number[i]];
      ahead.send(4);
      const bf16* value = step.values + d;
      const auto add_two = [&](int j) {
        const bf16* first = value + j * int64_t{dim};
        add(first, first + dim, [&](int r) { return set_pair(weights[r] + step.position + j); });
      };
      if (step.count == 4) {  // most are
        add_two(0);
        add_two(2);
        continue;
      }
      const int j = step.count / 2 * 2;
      if (j > 0) add_two(0);
      if (j == step.count) continue;
      const __m512i first_of_pair = _mm512_set1_epi32(0xffff);  // the next token is another step's
      add(value + j * int64_t{dim}, nullptr, [&](int r) {
        return _mm512_and_si512(set_pair(weights[r] + step.position + j), first_of_pair);
      });
    }
    repeat<R>([&](int r) {
      repeat<C>([&](int c) { add_outputs(sum[r][c], out[r] + d + c * kPairedInputs); });
    });
  }

  template <int R>
  static void mix_steps(const bf16* const (&weights)[R], const Steps<bf16>& steps,
                        const StepList& list, int dim, float* const (&out)[R], SendAhead& ahead) {
    int d = 0;
    for (; d + 2 * kPairedInputs <= dim; d += 2 * kPairedInputs)
      mix<R, 2>(weights, steps, list, dim, d, out, ahead);
    if (d < dim) mix<R, 1>(weights, steps, list, dim, d, out, ahead);
  }
};

}  // namespace

void attend_part(const AttendRow* rows, int row_count, int dim, const AttendPiece* pieces,
                 int piece_count, int shared, const NextPieces& next, float scale, float* scratch) {
  attend_part_by<PairProducts>(rows, row_count, dim, pieces, piece_count, shared, next, scale,
                               scratch);
}

}  // namespace sol::kernels::avx512_bf16
