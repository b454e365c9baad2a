// Attention of decoded tokens to bf16 keys and values on AMX tiles. To be called only where
// attention_bf16.h says so.
#pragma once

#include "kernels/amx_bf16/page_scores.h"
#include "kernels/kernels.h"

namespace sol::kernels::amx_bf16 {

// Most tokens in the pieces of one call; more than a part has where rows have tokens of their own.
inline constexpr int kMostTokens = 2 * kPartTokens;

// Working memory of one thread.
struct alignas(64) AttendMemory {
  int32_t queries[kMostDim / 32][16][16];  // second operands
  int32_t values[kMostTokens / 32][kMostDim / 16][16][16];
  bf16 gathered[4][16 * kMostDim];  // keys
  float sums[4][16][16];            // as tiles leave them
  float scores[4][kMostTokens];
  bf16 weights[kMostTokens / 32][16][32] = {};  // first operands; rows that hold no piece stay zero
  // The pieces' tokens: where they lie and which rows attend to them.
  const bf16* token_keys[kMostTokens + 32];
  const bf16* token_values[kMostTokens + 32];
  uint64_t token_rows[kMostTokens + 32];
  alignas(64) bf16 none[kMostDim] = {};  // where there is no token
};

// As Kernels::attend_part, of bf16 and with at most kMostTokens tokens in all pieces, which may lie
// at the same positions; see attention_bf16.h.
void attend_part(const AttendRow* rows, int row_count, int dim, const AttendPiece* pieces,
                 int piece_count, const NextPieces& next, float scale, AttendMemory& memory);

}  // namespace sol::kernels::amx_bf16
