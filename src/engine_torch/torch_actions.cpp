#include "engine_torch/torch_actions.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

#include <algorithm>
#include <limits>

#include "engine_torch/torch_device.h"
#include "kernels/select.h"

namespace sol {

using at::Tensor;

Tensor mark_largest(const Tensor& x, const Tensor& keep, int64_t most, const Tensor& keep_ties) {
  std::vector<int64_t> rows = x.sizes().vec();
  rows.back() = 1;
  const Tensor wanted = keep.expand(rows);
  const Tensor last = std::get<0>(at::topk(x, most, -1)).gather(-1, wanted - 1);
  const Tensor above = x > last, tie = x == last;
  Tensor kept = tie & (tie.cumsum(-1) <= wanted - above.sum(-1, /*keepdim=*/true));
  if (keep_ties.defined()) kept = kept | (tie & keep_ties);
  return above | kept;
}

RowActions::RowActions(std::span<const Action> actions, int width, const at::Device& device) {
  const int64_t rows = static_cast<int64_t>(actions.size());
  std::vector<int64_t> channels, rounded;
  std::vector<float> levels;
  for (const Action& action : actions) {
    channels.push_back(kernels::keep_count(action.rho, width));
    rounded.push_back(action.bits < 16);
    levels.push_back(static_cast<float>((int64_t{1} << (std::min(action.bits, 16) - 1)) - 1));
  }
  if (std::ranges::any_of(channels, [&](int64_t n) { return n < width; })) {
    most_channels_ = *std::ranges::max_element(channels);
    channels_ = on_device(channels, {rows, 1}, device);
  }
  if (std::ranges::any_of(rounded, [](int64_t yes) { return yes != 0; })) {
    levels_ = on_device(levels, {rows, 1}, device);
    rounded_ = on_device(rounded, {rows, 1}, device).to(at::kBool);
  }
}

Tensor RowActions::keep_channels(const Tensor& x) const {
  if (!channels_.defined()) return x;
  // A NaN orders above infinity, as the kernels have it.
  const double infinity = std::numeric_limits<double>::infinity();
  const Tensor magnitude = at::nan_to_num(x.abs(), infinity, infinity, infinity);
  return x.masked_fill(mark_largest(magnitude, channels_, most_channels_).logical_not(), 0.0);
}

Tensor RowActions::quantise(const Tensor& z) const {
  if (!levels_.defined()) return z;
  const Tensor largest = z.abs().amax(-1, /*keepdim=*/true).clamp_min(1e-8);
  const Tensor step = largest / levels_;
  const Tensor rounded =  // half to even
      at::minimum(at::maximum(at::round(z / step), levels_.neg()), levels_) * step;
  return at::where(rounded_, rounded, z);
}

}  // namespace sol
