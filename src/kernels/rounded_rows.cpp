#include "kernels/rounded_rows.h"

#include <algorithm>

#include "base/large_memory.h"
#include "base/threads.h"

namespace sol::kernels {

const bf16* rounded_rows(const float* x, int64_t x_stride, int rows, int in, int64_t stride) {
  // Below this many elements waking the other threads costs more than they save.
  constexpr int64_t kWorthThreads = 1 << 15;
  thread_local LargeVector<bf16> memory;
  memory.resize(static_cast<size_t>(rows * stride));
  bf16* to = memory.data();
  const Kernels& k = kernels();
  const auto round = [&](int64_t r) {
    k.store(x + r * x_stride, in, ElementType::bf16, to + r * stride);
    std::fill(to + r * stride + in, to + (r + 1) * stride, bf16{0});
  };
  if (rows * stride < kWorthThreads)
    for (int64_t r = 0; r < rows; ++r) round(r);
  else
    parallel_for(rows, round);
  return to;
}

}  // namespace sol::kernels
