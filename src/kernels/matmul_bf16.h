// Products of rows rounded to bf16 with bf16 weights or int8 codes, by our own kernels: on AMX
// tiles (amx_bf16/) or by AVX512-BF16's instruction (avx512_bf16/).
#pragma once

#include <optional>
#include <span>

#include "base/threads.h"
#include "kernels/amx_bf16/products.h"
#include "kernels/rounded_rows.h"

namespace sol::kernels {

enum class Bf16Unit { tiles, vectors };

// Whether this machine has it, within the current instruction set: vectors need VBMI besides, as
// avx512_vnni does. Asks the system for tiles.
bool has_unit(Bf16Unit unit);

// What multiplies so many rows faster than our float32 kernels and oneDNN do; none where those are
// as fast. For more than one row it asks the system for tiles.
std::optional<Bf16Unit> fastest_unit(int rows);

// Whether vectors multiply so many rows with int8 codes as they are; else these are summed as whole
// numbers, or widened first (matmul_widened.h).
bool vectors_multiply_codes(int rows);

// Rows for several products, rounded and as a unit wants them, in memory that stays valid until
// this thread's next call.
class NarrowRows {
 public:
  // Inputs of products with W or with panels of its outputs; of the listed channels alone, which
  // must outlive this, where there are any. The machine has the unit; tiles take
  // amx_bf16::kMostRows rows at most.
  NarrowRows(Bf16Unit unit, const float* x, int64_t x_stride, int rows, const WeightView& w,
             std::span<const int> channels);

  // y of outputs [begin, end) of W or of a panel of it, on this thread alone.
  void multiply(const WeightView& w, int begin, int end, float* y, int64_t y_stride) const;

  // The same of those rows alone, by vectors: more than avx512_bf16 calls few, or all of them, or
  // sums would be formed in another order.
  void multiply_rows(const Range& rows, const WeightView& w, int begin, int end, float* y,
                     int64_t y_stride) const;

 private:
  Bf16Unit unit_;
  RoundedRows rows_;
  amx_bf16::RowPairs pairs_;
  std::span<const int> channels_;
};

// As matmul() with x rounded to bf16, on all threads; where channels are listed, ascending, as
// matmul_kept(). W is bf16; the rest as above.
void bf16_matmul(Bf16Unit unit, const float* x, int64_t x_stride, int rows, const WeightView& w,
                 std::span<const int> channels, float* y, int64_t y_stride);

// As matmul() with int8 W where vectors_multiply_codes(rows). Codes are exact in bf16; x is rounded
// after the channels' scales, if channels have them, multiplied it.
void codes_matmul(const float* x, int64_t x_stride, int rows, const WeightView& w, float* y,
                  int64_t y_stride);

}  // namespace sol::kernels
