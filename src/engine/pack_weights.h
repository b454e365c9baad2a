// A model's tensors as the kernels want them: another type, another layout, or codes and scales.
#pragma once

#include <span>

#include "kernels/compressed.h"
#include "model/safetensors.h"

namespace sol {

// Throws Error naming the tensor and a weight in it that is NaN, infinite or beyond largest_weight.
void require_finite(const TensorView& tensor);

// The rows of a matrix [rows, columns], F32, F16 or BF16, one after the other as `type`:
// rows * row_bytes(type, columns) bytes. On all threads, with working memory of a few rows.
void pack_rows(const TensorView& matrix, kernels::WeightType type, std::byte* out);

// Matrices of one shape [out, in], side by side as [in][first | second | ...]: a channel's weights
// in all of them are one row. in * row_bytes(type, out * matrices) bytes.
void pack_channels(std::span<const TensorView* const> matrices, kernels::WeightType type,
                   std::byte* out);

// What embedding and head are held as. With 4 bits they are kept at 8: they are what quantisation
// hurts most (docs/performance.md, "Weight formats").
constexpr kernels::WeightType embedding_type(kernels::WeightType type) {
  return type == kernels::WeightType::int4 ? kernels::WeightType::int8 : type;
}

}  // namespace sol
