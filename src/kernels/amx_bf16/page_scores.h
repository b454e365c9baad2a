// Scores of pages by bf16 summaries on AMX tiles. To be called only where attention_bf16.h says so.
#pragma once

#include "kernels/kernels.h"

namespace sol::kernels::amx_bf16 {

inline constexpr int kMostDim = 256;  // of heads; a multiple of 32 here

// As Kernels::page_scores, of bf16 summaries; see attention_bf16.h.
void page_scores(const float* q, int heads, const PagesView& pages, int first, int count,
                 float* score, int64_t stride);

}  // namespace sol::kernels::amx_bf16
