// Attention of decoded tokens to a bf16 cache on AMX tiles, by our own kernels (amx_bf16/).
//
// Queries, weights and sums keep float32's precision: each of the first two is the sum of three
// bf16 numbers, which tiles multiply with stored ones without rounding. What differs from the
// kernels in kernels.h is the order of summation, and that subnormal numbers count as zero; an
// infinity in the cache may give NaN where they give infinity.
#pragma once

#include "kernels/kernels.h"
#include "kernels/matmul.h"

namespace sol::kernels {

// Whether the functions below may be called: `mode` leaves the order of summation free, AMX is
// there, the cache is bf16 and the heads' size is a multiple of 32, 256 at most.
bool amx_attends(ElementType type, int dim, MatmulMode mode);

// As Kernels::page_scores. Returns false, having done nothing, where tiles do not pay.
bool amx_page_scores(const float* q, int heads, const PagesView& pages, int first, int count,
                     float* score, int64_t stride);

// As Kernels::attend_part, but that pieces may lie at the same positions, and that a row's result
// depends, in the order of its sums alone, on which tokens the other rows of the call attend to;
// rows that attend to all of the call's tokens depend on nothing else. Returns false, having done
// nothing, where tiles do not pay or the pieces hold too many tokens.
bool amx_attend_part(const AttendRow* rows, int row_count, int dim, const AttendPiece* pieces,
                     int piece_count, const NextPieces& next, float scale);

}  // namespace sol::kernels
