// The readable definition of everything around attention; reference.cpp puts it into the table.
#pragma once

#include "kernels/kernels.h"

namespace sol::kernels::reference {

void page_scores(const float* q, int heads, const ExtremaView& extrema, int first, int count,
                 float* score, int64_t stride);
void mark_largest(const float* x, int n, int keep, bool magnitude, bool keep_ties, uint64_t* marks,
                  int32_t* scratch);
void attend_part(const AttendRow* rows, int row_count, int dim, ElementType type,
                 const AttendPiece* pieces, int piece_count, int shared, const NextPieces& next,
                 float scale, float* scratch);
void merge_parts(const float* partials, int parts, int64_t stride, int dim, float* out);
void attend_causal(const float* q, int64_t row_stride, int rows, int heads, int first_position,
                   const CacheView& keys, const CacheView& values, float scale, float* scratch,
                   float* out);
void softmax_step(float* scores, int64_t stride, int rows, int keys, int seen, int heads,
                  float scale, float* largest, float* total, float* out, int dim);

}  // namespace sol::kernels::reference
