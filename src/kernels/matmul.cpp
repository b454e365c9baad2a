#include "kernels/matmul.h"

#include <omp.h>

#include "base/threads.h"

namespace sol::kernels {
namespace {

// Ranges of outputs that start at whole cache lines of y and are worth a thread's while.
constexpr int kOutputGrain = 64;

void own_range(const Kernels& k, const float* x, int64_t x_stride, int rows, const WeightView& w,
               int begin, int end, float* y, int64_t y_stride) {
  if (w.layout == Layout::out_major)
    k.matmul_out_major(w, x, x_stride, rows, begin, end, y, y_stride);
  else
    k.matmul_in_major(w, x, x_stride, rows, begin, end, y, y_stride);
}

void own_matmul(const float* x, int64_t x_stride, int rows, const WeightView& w, float* y,
                int64_t y_stride) {
  const Kernels& k = kernels();
  const int threads = omp_in_parallel() ? 1 : thread_count();
  if (threads == 1) {
    own_range(k, x, x_stride, rows, w, 0, w.out, y, y_stride);
    return;
  }
#pragma omp parallel num_threads(threads)
  {
    // Outputs are split, so that each thread reads its own part of the weights only.
    const Range part = split(w.out, omp_get_num_threads(), omp_get_thread_num(), kOutputGrain);
    if (part.begin < part.end)
      own_range(k, x, x_stride, rows, w, static_cast<int>(part.begin), static_cast<int>(part.end),
                y, y_stride);
  }
}

}  // namespace

void matmul(const float* x, int64_t x_stride, int rows, const WeightView& w, float* y,
            int64_t y_stride, MatmulMode mode) {
  (void)mode;
  own_matmul(x, x_stride, rows, w, y, y_stride);
}

}  // namespace sol::kernels
