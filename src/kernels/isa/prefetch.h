// Sending for weights before they are needed. Addresses may lie beyond the weights: harmless.
//
// Weights arrive from memory as several short rows at once, which the processor's own prefetching
// follows less far than it pays to look ahead. Shares of what reading alone reaches, measured on
// bf16: 0.82 with one look 1 KB ahead in each row, 0.93 with both of the below.
#pragma once

#include "kernels/isa/simd.h"

namespace sol::kernels::SOL_ISA_NAME {

// The same place of the row that will be read next, into the second-level cache.
inline void send_for_next_row(const void* at) {
  __builtin_prefetch(at, 0, 2);
}

// That, and what comes soon in the present row, into the first-level cache: for products that wait
// for memory more than for anything else. Those with widened codes, which are as busy themselves,
// lose by it.
inline void send_for(const void* at, const void* next_row_at) {
  constexpr uint64_t kAhead = 512;  // bytes
  __builtin_prefetch(reinterpret_cast<const void*>(reinterpret_cast<uint64_t>(at) + kAhead));
  send_for_next_row(next_row_at);
}

}  // namespace sol::kernels::SOL_ISA_NAME
