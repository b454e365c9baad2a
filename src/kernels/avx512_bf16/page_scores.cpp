// A page's score is a plain product of what is kept of it, 2 dim numbers in a row, with as many
// factors made of the query.
#include "kernels/avx512_bf16/attention.h"
#include "kernels/avx512_bf16/pairs.h"
#include "kernels/isa/page_cursor.h"

namespace sol::kernels::avx512_bf16 {
namespace {

constexpr int kHeads = 8;       // whose factors are kept at hand
constexpr int kScoreHeads = 4;  // that share a load of four pages

// bf16 numbers whose sum a factor is, within 2^-17 of it: which pages are kept must not depend on
// rounding, and what they are read for takes longer.
constexpr int kPieces = 2;

struct alignas(64) Factors {
  bf16 of[kHeads][kPieces * 2 * kMostDim];
};

// What bf16 leaves of x; nothing of what is not finite.
Vec rest_of(Vec x, __m512i rounded_pairs, int half) {
  const __m256i of_x =
      half ? _mm512_extracti64x4_epi64(rounded_pairs, 1) : _mm512_castsi512_si256(rounded_pairs);
  const Vec rest = x - widen(of_x);
  return select(less(abs(rest), set(kInfinity)), rest, zero());
}

// 32 numbers as their pieces, `width` apart.
void store_pieces(Vec a, Vec b, int width, bf16* to) {
  const __m512i high = rounded(a, b);
  _mm512_store_si512(to, high);
  _mm512_store_si512(to + width, rounded(rest_of(a, high, 0), rest_of(b, high, 1)));
}

void make_factors(const float* q, int heads, int dim, PageSummary summary, Factors& factors) {
  const Vec half = set(0.5f / square_root(static_cast<float>(dim)));
  const int width = 2 * dim;
  for (int h = 0; h < heads; ++h, q += dim) {
    for (int d = 0; d < dim; d += kPairedInputs) {
      const Vec a = load(q + d), b = load(q + d + kWidth);
      bf16 *one = factors.of[h] + d, *two = one + dim;
      if (summary == PageSummary::moments) {
        store_pieces(a, b, width, one);
        store_pieces(half * a * a, half * b * b, width, two);
      } else {  // a NaN stays
        store_pieces(min(zero(), a), min(zero(), b), width, one);
        store_pieces(max(zero(), a), max(zero(), b), width, two);
      }
    }
  }
}

}  // namespace

void page_scores(const float* q, int heads, const PagesView& view, int first, int count,
                 float* score, int64_t stride) {
  const int dim = view.dim;
  Factors factors;
  for (int h = 0; h < heads; h += kHeads) {
    const int here = smaller(kHeads, heads - h);
    make_factors(q + static_cast<int64_t>(h) * dim, here, dim, view.summary, factors);
    for_four_pages<bf16>(view, first, count, [&](const bf16* const(&four)[4], int page, int pages) {
      store_scores<kScoreHeads>(here, page, pages, score + h * stride, stride,
                                [&]<int R>(int head, float* const(&to)[R]) {
                                  const bf16* of_heads[R];
                                  for (int r = 0; r < R; ++r) of_heads[r] = factors.of[head + r];
                                  dot_four<kPieces>(of_heads, four, 2 * dim, to);
                                });
    });
  }
}

}  // namespace sol::kernels::avx512_bf16
