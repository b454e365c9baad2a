// Choosing what to keep: channels by magnitude, pages by score. Plain code, the same on every
// instruction set: these choices must never differ.
#pragma once

#include <span>
#include <vector>

#include "kernels/kernels.h"

namespace sol::kernels {

// ceil of the float32 product share * n, clamped to [1, n] (docs/arithmetic.md, κ and ρ).
int keep_count(float share, int n);

// Indices of the `keep` largest |x|, ties to the lower index, ascending. `out` is resized to keep.
void top_channels(const float* x, int n, int keep, std::vector<int>& out);

// Indices of the `keep` highest scores, ties to the lower index, ascending. With keep_ties every
// page that ties with the last kept one is kept too (the authors' code).
void top_pages(const float* score, int n, int keep, bool keep_ties, std::vector<int>& out);

struct PageRule {
  int page_size, sinks, window;
  bool force_sinks;
};

// Token ranges to attend to, ascending, disjoint and merged, for selected pages (ascending) of n
// cached tokens, with the first T_s and the last T_w + 1 tokens added when the rule forces them.
void token_ranges(std::span<const int> pages, int n, const PageRule& rule,
                  std::vector<TokenRange>& out);

}  // namespace sol::kernels
