// Attention of decoded tokens to a bf16 cache by our own kernels for what multiplies bf16: AMX
// tiles (amx_bf16/) and AVX512-BF16's instruction (avx512_bf16/).
//
// On tiles queries, weights and sums keep float32's precision: each of the first two is the sum of
// three bf16 numbers, which tiles multiply with stored ones without rounding. The instruction gets
// them rounded to bf16, as products with the library do, but for the factors that pages are scored
// with: those are sums of two. Both sum in another order than the kernels in kernels.h, and count
// subnormal numbers as zero; an infinity in the cache may give NaN where those give infinity.
#pragma once

#include <optional>

#include "kernels/kernels.h"
#include "kernels/matmul.h"
#include "kernels/matmul_bf16.h"

namespace sol::kernels {

// What attends: tiles if there are any, else the instruction. None where neither is there, `mode`
// is not the library's, the cache is not bf16, or the heads' size is no multiple of 32 or above
// 256.
std::optional<Bf16Unit> attention_unit(ElementType type, int dim, MatmulMode mode);

// As Kernels::page_scores, of bf16 summaries. Returns false, having done nothing, where tiles do
// not pay.
bool bf16_page_scores(Bf16Unit unit, const float* q, int heads, const PagesView& pages, int first,
                      int count, float* score, int64_t stride);

// As Kernels::attend_part of a bf16 cache, but that the order of a row's sums depends on where its
// pieces begin and, on tiles, on which tokens the other rows of the call attend to, unless it
// attends to all of them. Returns false, having done nothing, where tiles do not pay or the pieces
// hold too many tokens for them. `scratch`: attend_part_scratch floats for vectors, null for tiles.
bool bf16_attend_part(Bf16Unit unit, const AttendRow* rows, int row_count, int dim,
                      const AttendPiece* pieces, int piece_count, int shared,
                      const NextPieces& next, float scale, float* scratch);

}  // namespace sol::kernels
