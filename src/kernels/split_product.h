// How our own products are shared out among the threads.
#pragma once

#include <omp.h>

#include <algorithm>

#include "base/threads.h"
#include "kernels/kernels.h"

namespace sol::kernels {

// Calls part(rows, outputs) for pieces of a product of `rows` rows with the weights of `channels`
// inputs, on all threads where it is large enough to wake them. No result may depend on the pieces.
template <typename Part>
void split_product(int rows, const WeightView& w, int64_t channels, const Part& part) {
  // Ranges of outputs that are whole cache lines of y and of the weights.
  constexpr int kOutputGrain = 64;
  // Below this many multiplications waking the other threads costs more than they save.
  constexpr int64_t kWorthThreads = 1 << 15;
  const bool small = rows * channels * w.out < kWorthThreads;
  const int threads = small || omp_in_parallel() ? 1 : thread_count();
  if (threads == 1) return part(Range{0, rows}, Range{0, w.out});
  // Outputs are split first, so that each thread reads its own part of the weights only; rows as
  // well when there are more threads than parts.
  const int out_parts = std::min(threads, (w.out + kOutputGrain - 1) / kOutputGrain);
  const int row_parts = std::clamp(threads / out_parts, 1, rows);
  parallel_for(int64_t{out_parts} * row_parts, [&](int64_t i) {
    const int p = static_cast<int>(i);
    const Range row_range = split(rows, row_parts, p / out_parts);
    const Range out_range = split(w.out, out_parts, p % out_parts, kOutputGrain);
    if (row_range.begin < row_range.end && out_range.begin < out_range.end)
      part(row_range, out_range);
  });
}

// The same of outputs alone: part(begin, end) has all rows.
template <typename Part>
void split_outputs(int rows, const WeightView& w, const Part& part) {
  split_product(1, w, int64_t{rows} * w.in, [&](const Range&, const Range& outputs) {
    part(static_cast<int>(outputs.begin), static_cast<int>(outputs.end));
  });
}

}  // namespace sol::kernels
