// Products of few rows with bf16 weights on AMX tiles, by our own kernels (amx_bf16/).
#pragma once

#include <optional>
#include <span>

#include "kernels/amx_bf16/products.h"
#include "kernels/kernels.h"

namespace sol::kernels {

// Whether this machine has AMX, within the current instruction set. Asks the system for it.
bool amx_multiplies();

// Rows for several products, rounded and as tiles want them, in memory that stays valid until this
// thread's next call.
class AmxRows {
 public:
  // Inputs of products with W or with panels of its outputs; of the listed channels alone, which
  // must outlive this, where there are any. Null when there is no AMX, or there are too few or too
  // many rows for it to pay.
  static std::optional<AmxRows> of(const float* x, int64_t x_stride, int rows, const WeightView& w,
                                   std::span<const int> channels);

  // y of outputs [begin, end) of W or a panel of it, as bf16, on this thread alone.
  void multiply(const WeightView& w, int begin, int end, float* y, int64_t y_stride) const;

 private:
  amx_bf16::Rows rows_;
  amx_bf16::RowPairs pairs_;
  std::span<const int> channels_;
};

// As matmul() with x rounded to bf16, on all threads; where channels are listed, ascending, as
// matmul_kept(). Returns false, having done nothing, when there is no AMX, or it does not pay: W is
// not bf16, or there are too few or too many rows.
bool amx_matmul(const float* x, int64_t x_stride, int rows, const WeightView& w,
                std::span<const int> channels, float* y, int64_t y_stride);

}  // namespace sol::kernels
