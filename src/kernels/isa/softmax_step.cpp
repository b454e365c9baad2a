// Running softmax between the two products of tiled attention.
#include "kernels/isa/functions.h"
#include "kernels/isa/math.h"

namespace sol::kernels::SOL_ISA_NAME {
namespace {

// One row of `keys` scores, the first `seen` of which count; returns the factor for what was summed
// before. The weights overwrite the scores from the front: bf16 takes half the room, so that
// nothing is overwritten before it is read.
Vec step(float* score, int keys, int seen, float scale, float* largest, float* total) {
  Vec lanes = set(-kInfinity);
  for_vectors(seen, [&](int i, auto part) {
    const Vec x = load(score + i, part);
    if constexpr (__is_same(decltype(part), All))
      lanes = max(x, lanes);
    else
      lanes = max(select(first_lanes(part.n), x, lanes), lanes);
  });
  const float before = *largest, found = reduce_max(lanes) * scale;
  if (found > before) *largest = found;
  // While every score is -infinity there is nothing to be relative to.
  const float base = *largest == -kInfinity ? 0.0f : *largest;
  Vec sum = zero();
  bf16* weights = reinterpret_cast<bf16*>(score);
  for_vectors(seen, [&](int i, auto part) {
    const Vec weight = keep(weight_exp(load(score + i, part) * set(scale) - set(base)), part);
    store(weights + i, weight, All{});
    sum = sum + weight;
  });
  for (int i = (seen + kWidth - 1) / kWidth * kWidth; i < keys; i += kWidth)
    store(weights + i, zero());
  const Vec factor = weight_exp(set(before - base));
  float lane[kWidth];
  store(lane, factor);
  *total = __builtin_fmaf(*total, lane[0], reduce_add(sum));
  return factor;
}

}  // namespace

void softmax_step(float* scores, int64_t stride, int rows, int keys, int seen, int heads,
                  float scale, float* largest, float* total, float* out, int dim) {
  for (int r = 0; r < rows; ++r) {
    int n = seen + r / heads;
    n = n < 0 ? 0 : smaller(n, keys);
    const float before = largest[r];
    const Vec factor = step(scores + r * stride, keys, n, scale, largest + r, total + r);
    if (largest[r] == before) continue;
    float* row = out + static_cast<int64_t>(r) * dim;
    for_vectors(dim, [&](int d, auto part) { store(row + d, load(row + d, part) * factor, part); });
  }
}

}  // namespace sol::kernels::SOL_ISA_NAME
