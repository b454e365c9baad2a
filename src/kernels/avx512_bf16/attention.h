// Attention of decoded tokens to a bf16 cache by AVX512-BF16's instruction. To be called only where
// attention_bf16.h says so.
#pragma once

#include "kernels/kernels.h"

namespace sol::kernels::avx512_bf16 {

inline constexpr int kMostDim = 256;  // of heads; their dim is a multiple of 32

// As the functions of Kernels, with bf16 keys, values and pages; see attention_bf16.h.
void page_scores(const float* q, int heads, const PagesView& pages, int first, int count,
                 float* score, int64_t stride);
void attend_part(const AttendRow* rows, int row_count, int dim, const AttendPiece* pieces,
                 int piece_count, int shared, const NextPieces& next, float scale, float* scratch);

}  // namespace sol::kernels::avx512_bf16
