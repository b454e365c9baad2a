// Few rows and int8 weights, which become bf16 in registers: a step waits for half of the bytes of
// bf16 weights, and none of them is written anywhere.
#include "kernels/avx512_bf16/codes.h"
#include "kernels/avx512_bf16/few_rows.h"

namespace sol::kernels::avx512_bf16 {
namespace {

static_assert(kMostCodeRows == 2 * kRowsTogether);

constexpr int kCodes = 64;

inline __mmask64 first_of_64(int n) {
  return n >= kCodes ? ~__mmask64{0} : (__mmask64{1} << n) - 1;
}

// Dot products of R rows with O outputs, 64 codes at a time. Outputs are `step` apart in y, their
// codes at w, w + stride, ...
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

}  // namespace

void few_codes_out_major(const WeightView& w, const RoundedRows& x, int out_begin, int out_end,
                         float* y, int64_t y_stride) {
  multiply_outputs<16>(x, out_begin, out_end, [&]<int R, int O>(int r, int o, int step) {
    dot_tile<R, O>(x.rows + r * x.stride, x.stride, row_of<int8_t>(w, o), step * w.stride, w.in,
                   y + r * y_stride + o, y_stride, step);
  });
}

void few_codes_in_major(const Channels& channels, const RoundedRows& x, int out_begin, int out_end,
                        float* y, int64_t y_stride) {
  constexpr int kPiece =
      512;  // 2 KB of each row of y: of 16 rows they stay in the first-level cache
  multiply_channels<int8_t, kPiece>(
      channels, x, out_begin, out_end, y, y_stride,
      [](const int8_t* first, const int8_t* second, int outputs) {
        const __mmask32 mask = first_of_32(outputs);
        const __m256i low = _mm256_maskz_loadu_epi8(mask, first);
        const __m256i high =
            second ? _mm256_maskz_loadu_epi8(mask, second) : _mm256_setzero_si256();
        return pairs_of_codes(_mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1));
      });
}

}  // namespace sol::kernels::avx512_bf16
