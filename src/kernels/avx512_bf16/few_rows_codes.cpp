// Few rows and int8 weights, which become bf16 in registers: a step waits for half of the bytes of
// bf16 weights, and none of them is written anywhere.
#include "kernels/avx512_bf16/codes.h"
#include "kernels/avx512_bf16/few_rows.h"
#include "kernels/isa/prefetch.h"

namespace sol::kernels::avx512_bf16 {
namespace {

static_assert(kMostCodeRows == 2 * kRowsTogether);

// --- out_major: dot products, 64 codes at a time ---

constexpr int kCodes = 64;

inline __mmask64 first_of_64(int n) {
  return n >= kCodes ? ~__mmask64{0} : (__mmask64{1} << n) - 1;
}

// O outputs of R rows, `step` apart in y, their codes at w, w + stride, ...
template <int R, int O>
[[gnu::flatten]] void dot_tile(const bf16* x, int64_t x_stride, const int8_t* w, int64_t stride,
                               int in, float* y, int64_t y_stride, int step) {
  Vec sum[O][kSumsOf<R>];
  repeat<O>([&](int o) { repeat<kSumsOf<R>>([&](int r) { sum[o][r] = zero(); }); });
  // Inputs are loaded for each output anew, from the first-level cache, so that registers are left.
  const auto add = [&](int o, int r, __m512i first, __m512i second, const Halves& c) {
    sum[o][r] = add_pairs(add_pairs(sum[o][r], first, c.first), second, c.second);
  };
  int i = 0;
  for (; i + kCodes <= in; i += kCodes) {
    repeat<O>([&](int o) {
      const int8_t* codes = w + o * stride + i;
      send_for_one_of<O>(codes);
      const auto halves = halves_of_codes(_mm512_loadu_si512(codes));
      repeat<R>([&](int r) {
        const bf16* inputs = x + r * x_stride + i;
        add(o, r, _mm512_loadu_si512(inputs), _mm512_loadu_si512(inputs + kPairedInputs), halves);
      });
    });
  }
  if (i < in) {
    const int rest = in - i;
    const __mmask32 first = first_of_32(rest), second = first_of_32(rest - smaller(rest, 32));
    repeat<O>([&](int o) {
      const __m512i codes = _mm512_maskz_loadu_epi8(first_of_64(rest), w + o * stride + i);
      const auto halves = halves_of_codes(codes);
      repeat<R>([&](int r) {
        const bf16* inputs = x + r * x_stride + i;
        add(o, r, _mm512_maskz_loadu_epi16(first, inputs),
            _mm512_maskz_loadu_epi16(second, inputs + kPairedInputs), halves);
      });
    });
  }
  repeat<O>([&](int o) { store_sums<R>(sum[o], y + o * step, y_stride); });
}

// --- in_major: pairs of channels along the outputs ---

// 2 KB of each row of y: those of 16 rows stay in the first-level cache.
constexpr int kPieceOutputs = 512;

template <int R, typename Columns>
[[gnu::flatten]] void add_codes(const ChannelRows<int8_t>& channels, const bf16* x,
                                int64_t x_stride, bool first, int o, int outputs,
                                const Columns& columns, float* y, int64_t y_stride) {
  const __mmask32 mask = first_of_32(outputs);
  const auto pairs_of = [&](const int8_t* one, const int8_t* other, int) {
    const __m256i low = _mm256_maskz_loadu_epi8(mask, one);
    const __m256i high = other ? _mm256_maskz_loadu_epi8(mask, other) : _mm256_setzero_si256();
    return pairs_of_codes(_mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1));
  };
  add_channels<R>(channels, x, x_stride, first, o, outputs, columns, y, y_stride, pairs_of);
}

}  // namespace

void few_codes_out_major(const WeightView& w, const RoundedRows& x, int out_begin, int out_end,
                         float* y, int64_t y_stride) {
  with_rows<kRowsTogether>(rows_of_first_group(x.count), [&]<int First>() {
    constexpr int kSums = 16, O = smaller(kSums / First, 8);
    for_streams<O>(out_begin, out_end, [&]<int Outputs>(int o, int step) {
      for_both_groups<First>(x.count, [&]<int R>(int r) {
        dot_tile<R, Outputs>(x.rows + r * x.stride, x.stride, row_of<int8_t>(w, o), step * w.stride,
                             w.in, y + r * y_stride + o, y_stride, step);
      });
    });
  });
}

void few_codes_in_major(const Channels& channels, const RoundedRows& x, int out_begin, int out_end,
                        float* y, int64_t y_stride) {
  with_rows<kRowsTogether>(rows_of_first_group(x.count), [&]<int First>() {
    for (int begin = out_begin; begin < out_end; begin += kPieceOutputs) {
      const int end = smaller(begin + kPieceOutputs, out_end);
      for (int k = 0; k < channels.n; k += kTogether) {
        const ChannelRows<int8_t> rows(channels, k);
        for_both_groups<First>(x.count, [&]<int R>(int r) {
          for (int o = begin; o < end; o += kPairOutputs) {
            if (r == 0 && (o - begin) % kCodes == 0)
              for (int c = 0; c < rows.count; ++c) __builtin_prefetch(rows.next[c] + o);
            with_columns<kPairOutputs>(end - o, [&](const auto& columns) {
              add_codes<R>(rows, x.rows + r * x.stride + k, x.stride, k == 0, o, end - o, columns,
                           y + r * y_stride, y_stride);
            });
          }
        });
      }
    }
  });
}

}  // namespace sol::kernels::avx512_bf16
