// Going over pages' summaries.
#pragma once

#include "kernels/isa/simd.h"

namespace sol::kernels::SOL_ISA_NAME {

// Walks over pages without dividing for each.
template <typename T>
class PageCursor {
 public:
  PageCursor(const PagesView& pages, int page)
      : pages_(pages), block_(page / pages.block_pages), slot_(page % pages.block_pages) {}

  const T* at() const {
    const std::byte* block = pages_.blocks[block_] + pages_.offset;
    return reinterpret_cast<const T*>(block) + int64_t{slot_} * 2 * pages_.dim;
  }
  int together() const { return pages_.block_pages - slot_; }  // pages that lie behind one another
  void skip(int pages) {                                       // at most those
    slot_ += pages;
    if (slot_ < pages_.block_pages) return;
    slot_ = 0;
    ++block_;
  }
  const T* next() {
    const T* page = at();
    skip(1);
    return page;
  }

 private:
  const PagesView& pages_;
  int block_, slot_;
};

// Pages of a block lie together, those of different blocks far apart, where the processor's own
// prefetching starts anew.
template <typename T>
inline void prefetch_page(const T* page, int dim) {
  constexpr uint64_t kLine = 64;
  const uint64_t at = reinterpret_cast<uint64_t>(page);
  const uint64_t bytes = 2 * sizeof(T) * static_cast<uint64_t>(dim);
  for (uint64_t i = 0; i < bytes; i += kLine)
    __builtin_prefetch(reinterpret_cast<const void*>(at + i));
}

// Calls body(four pages, first of them, how many there are) for pages [first, first + count); the
// last ones are the same where there are fewer than four. Pages that follow are sent for.
template <typename T, typename Body>
inline void for_four_pages(const PagesView& view, int first, int count, const Body& body) {
  constexpr int kAhead = 16;  // pages
  const int end = first + count;
  PageCursor<T> pages(view, first), ahead(view, first);
  int sent = first;  // pages before it are on their way
  for (int p = first; p < end; p += 4) {
    for (; sent < smaller(p + kAhead, end); ++sent) prefetch_page(ahead.next(), view.dim);
    const T* four[4];
    for (int k = 0; k < 4; ++k) four[k] = p + k < end ? pages.next() : four[k - 1];
    body(four, p, smaller(4, end - p));
  }
}

// For groups of at most `Most` heads calls score_four(first head, to), which writes four pages'
// scores to each to[r]; those of the `pages` pages that are there come to score[h * stride + page].
template <int Most, typename ScoreFour>
inline void store_scores(int heads, int page, int pages, float* score, int64_t stride,
                         const ScoreFour& score_four) {
  for_groups<Most>(heads, [&]<int R>(int h) {
    float* to[R];
    float some[R][4];
    for (int r = 0; r < R; ++r) to[r] = pages == 4 ? score + (h + r) * stride + page : some[r];
    score_four(h, to);
    for (int r = 0; pages < 4 && r < R; ++r)
      for (int k = 0; k < pages; ++k) score[(h + r) * stride + page + k] = some[r][k];
  });
}

}  // namespace sol::kernels::SOL_ISA_NAME
