#include "kernels/matmul.h"

#include <omp.h>

#include <algorithm>

#include "base/threads.h"
#include "kernels/compressed.h"
#include "kernels/matmul_dnnl.h"
#include "kernels/matmul_widened.h"

namespace sol::kernels {
namespace {

// Ranges of outputs that are whole cache lines of y and of the weights.
constexpr int kOutputGrain = 64;
// Below this many multiplications waking the other threads costs more than they save.
constexpr int64_t kWorthThreads = 1 << 15;
// From this many rows on oneDNN is faster than our own kernels, as measured with
// bench/kernels_bench on 256x1536 and 2048x8192: our in_major kernels read the weights once per
// four rows. Compressed weights must be widened for it, which pays later.
int library_rows(const WeightView& w) {
  if (is_compressed(w.type)) return 17;
  return w.layout == Layout::in_major ? 5 : 8;
}

bool library_matmul(const float* x, int64_t x_stride, int rows, const WeightView& w, float* y,
                    int64_t y_stride, MatmulMode mode) {
  const bool narrow = mode == MatmulMode::library && dnnl_multiplies(ElementType::bf16);
  return is_compressed(w.type) ? widened_matmul(x, x_stride, rows, w, y, y_stride,
                                                narrow ? ElementType::bf16 : ElementType::f32)
                               : dnnl_matmul(x, x_stride, rows, w, y, y_stride);
}

void own_part(const Kernels& k, const float* x, int64_t x_stride, const Range& rows,
              const WeightView& w, const Range& outs, float* y, int64_t y_stride) {
  if (rows.begin >= rows.end || outs.begin >= outs.end) return;
  const auto product = w.layout == Layout::out_major ? k.matmul_out_major : k.matmul_in_major;
  product(w, x + rows.begin * x_stride, x_stride, static_cast<int>(rows.end - rows.begin),
          static_cast<int>(outs.begin), static_cast<int>(outs.end), y + rows.begin * y_stride,
          y_stride);
}

void own_matmul(const float* x, int64_t x_stride, int rows, const WeightView& w, float* y,
                int64_t y_stride) {
  const Kernels& k = kernels();
  const bool small = int64_t{rows} * w.in * w.out < kWorthThreads;
  const int threads = small || omp_in_parallel() ? 1 : thread_count();
  if (threads == 1) {
    own_part(k, x, x_stride, {0, rows}, w, {0, w.out}, y, y_stride);
    return;
  }
  // Outputs are split first, so that each thread reads its own part of the weights only; rows as
  // well when there are more threads than parts.
  const int out_parts = std::min(threads, (w.out + kOutputGrain - 1) / kOutputGrain);
  const int row_parts = std::clamp(threads / out_parts, 1, rows);
#pragma omp parallel for schedule(static) num_threads(threads)
  for (int part = 0; part < out_parts * row_parts; ++part) {
    own_part(k, x, x_stride, split(rows, row_parts, part / out_parts), w,
             split(w.out, out_parts, part % out_parts, kOutputGrain), y, y_stride);
  }
}

}  // namespace

void matmul(const float* x, int64_t x_stride, int rows, const WeightView& w, float* y,
            int64_t y_stride, MatmulMode mode) {
  if (rows <= 0) return;
  if (mode != MatmulMode::own && rows >= library_rows(w) &&
      library_matmul(x, x_stride, rows, w, y, y_stride, mode))
    return;
  own_matmul(x, x_stride, rows, w, y, y_stride);
}

}  // namespace sol::kernels
