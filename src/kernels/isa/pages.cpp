// Summaries of pages of keys, and how pages score by them.
#include "kernels/isa/functions.h"
#include "kernels/isa/page_cursor.h"

namespace sol::kernels::SOL_ISA_NAME {
namespace {

// What a query multiplies a page's two vectors by.
struct Factors {
  Vec one, two;
};
template <PageSummary S>
inline Factors factors(Vec x, Vec half) {
  if constexpr (S == PageSummary::moments) return {x, half * x * x};
  return {min(zero(), x), max(zero(), x)};  // a NaN stays
}

// Scores of R queries, dim apart, with four pages.
template <PageSummary S, int R, typename T>
void score_four(const float* q, const T* const (&page)[4], int dim, float half,
                float* const (&score)[R]) {
  Vec sum[R][4];
  for (int r = 0; r < R; ++r)
    for (int k = 0; k < 4; ++k) sum[r][k] = zero();
  const Vec halves = set(half);
  for_vectors(dim, [&](int d, auto part) {
    Vec one[4], two[4];
    for (int k = 0; k < 4; ++k) {
      one[k] = load(page[k] + d, part);
      two[k] = load(page[k] + dim + d, part);
    }
    for (int r = 0; r < R; ++r) {
      const Factors by = factors<S>(load(q + r * dim + d, part), halves);
      for (int k = 0; k < 4; ++k)
        sum[r][k] = S == PageSummary::moments ? fma(by.two, two[k], fma(by.one, one[k], sum[r][k]))
                                              : fma(by.one, one[k], fma(by.two, two[k], sum[r][k]));
    }
  });
  reduce_add4(sum, score);
}

template <PageSummary S>
void score_pages(const float* q, int heads, const PagesView& view, int first, int count,
                 float* score, int64_t stride) {
  const int dim = view.dim;
  const float half = 0.5f / square_root(static_cast<float>(dim));
  with_type(view.type, [&]<typename T>(const T*) {
    for_four_pages<T>(view, first, count, [&](const T* const(&four)[4], int page, int pages) {
      store_scores<kScoreRows>(
          heads, page, pages, score, stride, [&]<int R>(int h, float* const(&to)[R]) {
            score_four<S>(q + static_cast<int64_t>(h) * dim, four, dim, half, to);
          });
    });
  });
}

}  // namespace

void page_extrema(const void* keys, ElementType type, int count, int dim, void* minmax) {
  with_type(type, [&]<typename T>(const T*) {
    const T* first = static_cast<const T*>(keys);
    T* out = static_cast<T*>(minmax);
    for_vectors(dim, [&](int d, auto part) {
      const T* key = first + d;
      Vec low = load(key, part), high = low;
      for (int j = 1; j < count; ++j) {
        key += dim;
        const Vec x = load(key, part);
        low = min(x, low);
        high = max(x, high);
      }
      store(out + d, low, part);
      store(out + dim + d, high, part);
    });
  });
}

void page_moments(const void* keys, ElementType type, int count, int dim, void* moments) {
  const Vec share = set(1.0f / static_cast<float>(count));
  with_type(type, [&]<typename T>(const T*) {
    const T* first = static_cast<const T*>(keys);
    T* out = static_cast<T*>(moments);
    for_vectors(dim, [&](int d, auto part) {
      Vec sum = zero();
      for (int j = 0; j < count; ++j)
        sum = sum + load(first + static_cast<int64_t>(j) * dim + d, part);
      const Vec mean = sum * share;
      Vec squares = zero();
      for (int j = 0; j < count; ++j) {
        const Vec difference = load(first + static_cast<int64_t>(j) * dim + d, part) - mean;
        squares = fma(difference, difference, squares);
      }
      store(out + d, mean, part);
      store(out + dim + d, squares * share, part);
    });
  });
}

void page_scores(const float* q, int heads, const PagesView& pages, int first, int count,
                 float* score, int64_t stride) {
  if (pages.summary == PageSummary::moments)
    score_pages<PageSummary::moments>(q, heads, pages, first, count, score, stride);
  else
    score_pages<PageSummary::extrema>(q, heads, pages, first, count, score, stride);
}

}  // namespace sol::kernels::SOL_ISA_NAME
