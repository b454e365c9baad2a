// A page's score is a plain product of what is kept of it, 2 dim numbers in a row, with as many
// factors made of the query. Pages are taken 16 at a time (8 where blocks hold no more) as they
// lie; four queries are scored in one pass over them.
#include "kernels/amx_bf16/page_scores.h"

#include "kernels/amx_bf16/split_scores.h"
#include "kernels/isa/page_cursor.h"

namespace sol::kernels::amx_bf16 {
namespace {

constexpr int kPagesAhead = 64;  // that are sent for

using Factors = TileWords[2 * kMostDim / kTileInputs];

// What four queries multiply pages by, 32 numbers at a time.
void make_factors(const float* q, int queries, int dim, PageSummary summary, Factors& to) {
  const Vec half = set(0.5f / square_root(static_cast<float>(dim)));
  const bool moments = summary == PageSummary::moments;
  for (int i = 0; i < 2 * dim; i += kTileInputs) {
    const bool second = i >= dim;
    const float* from = q + (second ? i - dim : i);
    split_queries(
        queries,
        [&](int r, int part) {
          const Vec x = load(from + static_cast<int64_t>(r) * dim + part * kWidth);
          if (moments) return second ? half * x * x : x;
          return second ? max(zero(), x) : min(zero(), x);  // a NaN stays
        },
        to[i / kTileInputs]);
  }
}

using Cursor = PageCursor<bf16>;

// Calls body(page, count) for the next `pages` pages, as many as lie together at a time.
template <typename Body>
void for_runs(Cursor& cursor, int pages, const Body& body) {
  while (pages > 0) {
    const int here = smaller(pages, cursor.together());
    body(cursor.at(), here);
    cursor.skip(here);
    pages -= here;
  }
}

void send_for(const bf16* page, int pages, int dim) {
  constexpr int kLine = 32;  // elements
  for (int64_t i = 0; i < int64_t{pages} * 2 * dim; i += kLine) __builtin_prefetch(page + i, 0, 2);
}

constexpr int kGroups = 4;  // that are multiplied together
using Gathered = bf16[kGroups][kTileHeight * 2 * kMostDim];

// `pages` pages as they lie, or gathered where they do not lie together or a tile is not full.
StoredRows next_rows(Cursor& cursor, int pages, int height, int dim,
                     bf16 (&gathered)[kTileHeight * 2 * kMostDim]) {
  const int64_t stride = int64_t{2} * dim;
  const int64_t bytes = stride * static_cast<int64_t>(sizeof(bf16));
  if (pages == height && cursor.together() >= pages) {
    const bf16* at = cursor.at();
    cursor.skip(pages);
    return {at, bytes};
  }
  bf16* to = gathered;
  for_runs(cursor, pages, [&](const bf16* from, int here) {
    __builtin_memcpy(to, from, static_cast<size_t>(here * bytes));
    to += here * stride;
  });
  __builtin_memset(to, 0, static_cast<size_t>((height - pages) * bytes));
  return {gathered, bytes};
}

}  // namespace

void page_scores(const float* q, int heads, const PagesView& pages, int first, int count,
                 float* score, int64_t stride) {
  const int dim = pages.dim, end = first + count;
  const int height =
      pages.block_pages % kTileHeight == kTileHeight / 2 ? kTileHeight / 2 : kTileHeight;
  alignas(64) Factors factors;
  alignas(64) Gathered gathered;
  alignas(64) float sums[kGroups * kTileHeight * kTileHeight];
  shape_for_rows(height);
  for (int h = 0; h < heads; h += kRowsOfPieces) {
    const int queries = smaller(kRowsOfPieces, heads - h);
    make_factors(q + static_cast<int64_t>(h) * dim, queries, dim, pages.summary, factors);
    Cursor cursor(pages, first), ahead(pages, first);
    int sent = first;
    for (int p = first; p < end;) {
      const int wanted = smaller(p + kGroups * height + kPagesAhead, end);
      for_runs(ahead, wanted - sent,
               [&](const bf16* page, int here) { send_for(page, here, dim); });
      sent = wanted;
      const int here = smaller(end - p, kGroups * height);
      StoredRows rows[kGroups];
      for (int g = 0; g * height < here; ++g)
        rows[g] = next_rows(cursor, smaller(height, here - g * height), height, dim, gathered[g]);
      if (here > (kGroups - 1) * height)
        multiply_rows<kGroups>(rows, height, 2 * dim, factors, sums);
      else
        for (int g = 0; g * height < here; ++g)
          multiply_rows<1>(rows + g, height, 2 * dim, factors, sums + g * height * kTileHeight);
      for (int i = 0; i < here; i += kTileHeight) {
        const Scores scores = sum_pieces(sums + i * kTileHeight);
        const auto mask = static_cast<__mmask16>(first_of_32(here - i));
        for (int r = 0; r < queries; ++r)
          _mm512_mask_storeu_ps(score + (h + r) * stride + p + i, mask, scores.of[r].v);
      }
      p += here;
    }
  }
  _tile_release();
}

}  // namespace sol::kernels::amx_bf16
