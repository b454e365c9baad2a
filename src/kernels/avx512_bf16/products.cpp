#include "kernels/avx512_bf16/products.h"

#include <cassert>

#include "kernels/avx512_bf16/rows.h"

namespace sol::kernels::avx512_bf16 {

void out_major(const WeightView& w, const RoundedRows& x, int out_begin, int out_end, float* y,
               int64_t y_stride) {
  assert(w.type == WeightType::bf16 || x.count <= kMostCodeRows);
  const auto multiply = w.type == WeightType::int8 ? few_codes_out_major
                        : x.count <= kFewByOutput  ? few_out_major
                                                   : many_out_major;
  multiply(w, x, out_begin, out_end, y, y_stride);
}

void in_major(const WeightView& w, const RoundedRows& x, const int* channels, int n, int out_begin,
              int out_end, float* y, int64_t y_stride) {
  assert(w.type == WeightType::bf16 || (!channels && x.count <= kMostCodeRows));
  const auto multiply = w.type == WeightType::int8 ? few_codes_in_major
                        : x.count <= kFewByChannel ? few_in_major
                                                   : many_in_major;
  multiply({w, channels, channels ? n : w.in}, x, out_begin, out_end, y, y_stride);
}

}  // namespace sol::kernels::avx512_bf16
