// Integer products: x becomes codes, then our own kernels for few rows, oneDNN for many.
#include <cassert>
#include <vector>

#include "base/large_memory.h"
#include "kernels/compressed.h"
#include "kernels/int8_scales.h"
#include "kernels/matmul.h"
#include "kernels/matmul_dnnl.h"
#include "kernels/split_product.h"

namespace sol::kernels {
namespace {

// From this many rows on oneDNN is faster than our own kernels (bench/kernels_bench).
constexpr int kLibraryRows = 5;

// Kept by the calling thread, read by all.
struct CodedRows {
  LargeVector<int8_t> codes;
  std::vector<float> scales;
  int64_t stride = 0;
};

// Element k of a row of codes is channel channels[k], or k itself.
void quantise_rows(const float* x, int64_t x_stride, int rows, const WeightView& w,
                   std::span<const int> channels, CodedRows& coded) {
  const int n = channels.empty() ? w.in : static_cast<int>(channels.size());
  const auto channel = [&](int k) {
    return channels.empty() ? k : channels[static_cast<size_t>(k)];
  };
  coded.stride = code_bytes(WeightType::int8, n);  // padded to whole groups
  coded.codes.resize(static_cast<size_t>(coded.stride * rows));
  coded.scales.resize(static_cast<size_t>(rows));
  thread_local std::vector<float> channel_scales;
  const bool by_channel = w.layout == Layout::in_major;
  if (by_channel) int8_scales(w, channels, channel_scales);
  const float* scales = channel_scales.data();
  const Kernels& kernel = kernels();
  parallel_for(rows, [&](int64_t r) {
    thread_local std::vector<float> scaled;
    const float* from = x + r * x_stride;
    if (by_channel) {
      scaled.resize(static_cast<size_t>(n));
      for (int k = 0; k < n; ++k) scaled[static_cast<size_t>(k)] = from[channel(k)] * scales[k];
      from = scaled.data();
    }
    int8_t* to = coded.codes.data() + r * coded.stride;
    kernel.quantise_row(from, n, to, &coded.scales[static_cast<size_t>(r)]);
    std::fill(to + n, to + coded.stride, int8_t{0});
  });
}

// Sums as floats to results, in the order of operations that our own kernels have.
void apply_scales(const CodedRows& coded, int rows, const WeightView& w, float* y,
                  int64_t y_stride) {
  thread_local std::vector<float> memory;
  if (w.layout == Layout::out_major) int8_scales(w, {}, memory);
  const float* output_scales = w.layout == Layout::out_major ? memory.data() : nullptr;
  parallel_for(rows, [&](int64_t r) {
    float* row = y + r * y_stride;
    const float scale = coded.scales[static_cast<size_t>(r)];
    if (output_scales)
      for (int o = 0; o < w.out; ++o) row[o] *= scale * output_scales[o];
    else
      for (int o = 0; o < w.out; ++o) row[o] *= scale;
  });
}

}  // namespace

void integer_matmul(const float* x, int64_t x_stride, int rows, const WeightView& w,
                    std::span<const int> channels, float* y, int64_t y_stride, MatmulMode mode) {
  assert(w.type == WeightType::int8 && w.in <= kMostIntegerInputs);
  assert(channels.empty() || w.layout == Layout::in_major);
  if (rows <= 0) return;
  thread_local CodedRows memory;
  CodedRows& coded = memory;  // a thread_local named in another thread is that thread's
  quantise_rows(x, x_stride, rows, w, channels, coded);
  if (mode != MatmulMode::own && channels.empty() && rows >= kLibraryRows &&
      dnnl_code_sums(coded.codes.data(), coded.stride, rows, w, y, y_stride))
    return apply_scales(coded, rows, w, y, y_stride);
  const Kernels& k = kernels();
  const int n = channels.empty() ? w.in : static_cast<int>(channels.size());
  split_product(rows, w, n, [&](const Range& r, const Range& o) {
    const int8_t* from = coded.codes.data() + r.begin * coded.stride;
    const float* scales = coded.scales.data() + r.begin;
    float* to = y + r.begin * y_stride;
    const int begin = static_cast<int>(o.begin), end = static_cast<int>(o.end);
    const int count = static_cast<int>(r.end - r.begin);
    if (w.layout == Layout::in_major)
      k.integer_in_major(w, from, coded.stride, scales, count,
                         channels.empty() ? nullptr : channels.data(), n, begin, end, to, y_stride);
    else
      k.integer_out_major(w, from, coded.stride, scales, count, begin, end, to, y_stride);
  });
}

}  // namespace sol::kernels
