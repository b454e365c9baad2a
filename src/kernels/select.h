// Choosing what to keep: channels by magnitude, pages by score, and which tokens that means. The
// same on every instruction set: these choices must never differ.
#pragma once

#include <span>
#include <vector>

#include "kernels/kernels.h"

namespace sol::kernels {

// ceil of the float32 product share * n, clamped to [1, n] (docs/arithmetic.md, κ and ρ).
int keep_count(float share, int n);

// Indices of the `keep` largest |x|, ties to the lower index, ascending. `out` is resized to keep.
void top_channels(const float* x, int n, int keep, std::vector<int>& out);

struct PageRule {
  int page_size, sinks, window;
  bool force_sinks;
  bool operator==(const PageRule&) const = default;
};

inline int page_count(int tokens, int page_size) {
  return (tokens + page_size - 1) / page_size;
}
// 64-bit words of a set of pages.
inline int page_words(int pages) {
  return (pages + 63) / 64;
}

// Marks the `keep` pages of highest score among those of n cached tokens, ties to the lower index:
// bit p of marks[page_words]. A rule that forces no tokens keeps every page that ties with the last
// kept one as well (the authors' code); one that does adds the pages whose tokens are all forced.
void select_pages(const float* score, int n, int keep, const PageRule& rule, uint64_t* marks);

// What one row attends to of n cached tokens: its marked pages (null: everything) and, where the
// rule forces them, the first T_s and the last T_w + 1 tokens.
struct RowPages {
  const uint64_t* marks;
  int n;
};

// Tokens [begin, end) and the rows, as bits, that attend to them; never none.
struct RowRun {
  int begin, end;
  uint64_t rows;
};

// What the rows whose bits are in `members` attend to within [begin, end), which lies inside all of
// their sequences: appended to `out`, ascending, neighbours with the same rows merged.
void row_runs(std::span<const RowPages> rows, uint64_t members, const PageRule& rule, int begin,
              int end, std::vector<RowRun>& out);

}  // namespace sol::kernels
