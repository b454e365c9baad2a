// ρ, q and the choice of the largest, as tensors (docs/arithmetic.md). Rows choose apart: what one
// keeps depends on nobody else in the batch.
#pragma once

#include <ATen/core/Tensor.h>

#include <span>
#include <vector>

#include "sol/action.h"

namespace sol {

// Marks the largest `keep` of each row of x [..., n], ties to the lower index: bool, shaped as x.
// keep: int64, of a shape that broadcasts to [..., 1], at least 1 and at most `most`. Where
// keep_ties (bool, broadcast likewise; may be undefined) is true, every value that equals the last
// kept one is kept as well. x must not hold NaN.
at::Tensor mark_largest(const at::Tensor& x, const at::Tensor& keep, int64_t most,
                        const at::Tensor& keep_ties = {});

// What ρ and q do to the rows of one decode pass.
class RowActions {
 public:
  RowActions() = default;  // dense
  RowActions(std::span<const Action> actions, int width, const at::Device& device);

  // ρ: x [rows, width] with each row's dropped channels zero.
  at::Tensor keep_channels(const at::Tensor& x) const;
  // q: z [rows, d] rounded to each row's bits, its own largest magnitude as the range.
  at::Tensor quantise(const at::Tensor& z) const;

 private:
  at::Tensor channels_;  // int64 [rows, 1]; undefined where nobody drops any
  int64_t most_channels_ = 0;
  at::Tensor levels_;   // float [rows, 1]: 2^(bits-1) - 1; undefined where nobody rounds
  at::Tensor rounded_;  // bool [rows, 1]: bits < 16
};

}  // namespace sol
