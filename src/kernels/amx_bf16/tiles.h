// Tiles are 16 rows of 64 bytes; one instruction multiplies 16 x 32 with 32 x 16 numbers and adds
// to float32 sums. Its second operand holds pairs of inputs: row k, column n is the pair of inputs
// 2k and 2k + 1 of column n.
#pragma once

#include "kernels/isa/simd.h"

namespace sol::kernels::amx_bf16 {

inline constexpr int kTileHeight = 16, kTilePairs = 16, kTileInputs = 2 * kTilePairs,
                     kTileBytes = 64;

// One operand in memory, or sums.
using TileWords = int32_t[kTileHeight][kTileHeight];
using TileSums = float[kTileHeight][kTileHeight];

// The compiler's functions for tiles do not tell it that they read memory: what was stored before
// must be there.
inline void finish_stores() {
  __asm__ volatile("" ::: "memory");
}

// What ldtilecfg reads (Intel's manual, "AMX: palette 1").
struct alignas(64) TileShapes {
  uint8_t palette = 1, start_row = 0, reserved[14] = {};
  uint16_t row_bytes[16] = {};
  uint8_t rows[16] = {};

  void set(int tile, int tile_rows, int bytes) {
    rows[tile] = static_cast<uint8_t>(tile_rows);
    row_bytes[tile] = static_cast<uint16_t>(bytes);
  }
  void use() const { __asm__ volatile("ldtilecfg %0" ::"m"(*this)); }
};

}  // namespace sol::kernels::amx_bf16
