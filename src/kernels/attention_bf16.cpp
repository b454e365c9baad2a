#include "kernels/attention_bf16.h"

#include <bit>
#include <memory>

#include "kernels/amx_bf16/attend.h"
#include "kernels/amx_bf16/page_scores.h"
#include "kernels/avx512_bf16/attention.h"

namespace sol::kernels {

#ifdef SOL_X86_KERNELS

namespace {

// Of tiles, as measured with bench/kernels_bench, keys and values in the second-level cache: one
// has room for four rows, and takes the same time for one.
constexpr int kFewestRows = 3;
constexpr int kLeastPercent = 25;  // of the tokens, attended to by the mean row
// One query is scored as fast without tiles, and so are two where pages must be gathered.
constexpr int kFewestHeads = 2, kFewestHeadsToGather = 3, kPagesAsTheyLie = 8;

bool worth_tiles(int row_count, const AttendPiece* pieces, int piece_count) {
  if (row_count < kFewestRows) return false;
  int64_t tokens = 0, attended = 0;
  for (int i = 0; i < piece_count; ++i) {
    tokens += pieces[i].count;
    attended += int64_t{pieces[i].count} * std::popcount(pieces[i].rows);
  }
  return tokens <= amx_bf16::kMostTokens && 100 * attended >= kLeastPercent * tokens * row_count;
}

}  // namespace

std::optional<Bf16Unit> attention_unit(ElementType type, int dim, MatmulMode mode) {
  static_assert(amx_bf16::kMostDim == avx512_bf16::kMostDim);
  if (mode != MatmulMode::library || type != ElementType::bf16 || dim % 32 != 0 ||
      dim > amx_bf16::kMostDim)
    return std::nullopt;
  if (has_unit(Bf16Unit::tiles)) return Bf16Unit::tiles;
  if (has_unit(Bf16Unit::vectors)) return Bf16Unit::vectors;
  return std::nullopt;
}

bool bf16_page_scores(Bf16Unit unit, const float* q, int heads, const PagesView& pages, int first,
                      int count, float* score, int64_t stride) {
  if (unit == Bf16Unit::vectors) {
    avx512_bf16::page_scores(q, heads, pages, first, count, score, stride);
    return true;
  }
  const bool gather = pages.block_pages % kPagesAsTheyLie != 0;
  if (heads < (gather ? kFewestHeadsToGather : kFewestHeads)) return false;
  amx_bf16::page_scores(q, heads, pages, first, count, score, stride);
  return true;
}

bool bf16_attend_part(Bf16Unit unit, const AttendRow* rows, int row_count, int dim,
                      const AttendPiece* pieces, int piece_count, int shared,
                      const NextPieces& next, float scale, float* scratch) {
  if (unit == Bf16Unit::vectors) {
    avx512_bf16::attend_part(rows, row_count, dim, pieces, piece_count, shared, next, scale,
                             scratch);
    return true;
  }
  if (!worth_tiles(row_count, pieces, piece_count)) return false;
  thread_local const auto memory = std::make_unique<amx_bf16::AttendMemory>();
  amx_bf16::attend_part(rows, row_count, dim, pieces, piece_count, next, scale, *memory);
  return true;
}

#else

std::optional<Bf16Unit> attention_unit(ElementType, int, MatmulMode) {
  return std::nullopt;
}

bool bf16_page_scores(Bf16Unit, const float*, int, const PagesView&, int, int, float*, int64_t) {
  return false;
}

bool bf16_attend_part(Bf16Unit, const AttendRow*, int, int, const AttendPiece*, int, int,
                      const NextPieces&, float, float*) {
  return false;
}

#endif

}  // namespace sol::kernels
