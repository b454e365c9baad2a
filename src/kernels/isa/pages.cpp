// Page extrema and the bounds on attention scores that they give.
#include "kernels/isa/functions.h"
#include "kernels/isa/simd.h"

namespace sol::kernels::SOL_ISA_NAME {
namespace {

// Walks over pages without dividing for each.
template <typename T>
class PageCursor {
 public:
  PageCursor(const ExtremaView& extrema, int page)
      : extrema_(extrema), block_(page / extrema.block_pages), slot_(page % extrema.block_pages) {}

  const T* next() {
    const std::byte* block = extrema_.blocks[block_] + extrema_.offset;
    const T* page = reinterpret_cast<const T*>(block) + int64_t{slot_} * 2 * extrema_.dim;
    if (++slot_ == extrema_.block_pages) {
      slot_ = 0;
      ++block_;
    }
    return page;
  }

 private:
  const ExtremaView& extrema_;
  int block_, slot_;
};

// Pages of a block lie together, those of different blocks far apart, where the processor's own
// prefetching starts anew.
template <typename T>
void prefetch_page(const T* page, int dim) {
  constexpr uint64_t kLine = 64;
  const uint64_t at = reinterpret_cast<uint64_t>(page);
  const uint64_t bytes = 2 * sizeof(T) * static_cast<uint64_t>(dim);
  for (uint64_t i = 0; i < bytes; i += kLine)
    __builtin_prefetch(reinterpret_cast<const void*>(at + i));
}

// Scores of R queries, dim apart, with four pages.
template <int R, typename T>
void score_four(const float* q, const T* const (&low)[4], int dim, float* const (&score)[R]) {
  Vec sum[R][4];
  for (int r = 0; r < R; ++r)
    for (int k = 0; k < 4; ++k) sum[r][k] = zero();
  for_vectors(dim, [&](int d, auto part) {
    Vec least[4], most[4];
    for (int k = 0; k < 4; ++k) {
      least[k] = load(low[k] + d, part);
      most[k] = load(low[k] + dim + d, part);
    }
    for (int r = 0; r < R; ++r) {
      const Vec x = load(q + r * dim + d, part);
      const Vec positive = max(zero(), x), negative = min(zero(), x);  // a NaN stays
      for (int k = 0; k < 4; ++k)
        sum[r][k] = fma(negative, least[k], fma(positive, most[k], sum[r][k]));
    }
  });
  reduce_add4(sum, score);
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

void page_scores(const float* q, int heads, const ExtremaView& extrema, int first, int count,
                 float* score, int64_t stride) {
  constexpr int kAhead = 16;  // pages
  const int dim = extrema.dim, end = first + count;
  with_type(extrema.type, [&]<typename T>(const T*) {
    PageCursor<T> pages(extrema, first), ahead(extrema, first);
    int sent = first;  // pages before it are on their way
    for (int p = first; p < end; p += 4) {
      for (; sent < smaller(p + kAhead, end); ++sent) prefetch_page(ahead.next(), dim);
      const T* low[4];
      for (int k = 0; k < 4; ++k) low[k] = p + k < end ? pages.next() : low[k - 1];
      const int here = smaller(4, end - p);
      for_groups<kScoreRows>(heads, [&]<int R>(int h) {
        float* to[R];
        float some[R][4];
        for (int r = 0; r < R; ++r) to[r] = here == 4 ? score + (h + r) * stride + p : some[r];
        score_four(q + static_cast<int64_t>(h) * dim, low, dim, to);
        for (int r = 0; here < 4 && r < R; ++r)
          for (int k = 0; k < here; ++k) score[(h + r) * stride + p + k] = some[r][k];
      });
    }
  });
}

}  // namespace sol::kernels::SOL_ISA_NAME
