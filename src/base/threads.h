// One thread runtime for the whole program: OpenMP, which oneDNN and LibTorch use as well.
#pragma once

#include <cstdint>

namespace sol {

// The processors that this process may use, by its affinity mask.
int usable_processors();

// Sets the number of threads for all that follows, on whichever thread it is called; 0 means as
// many as there are such processors, within OpenMP's limits. Throws Error for more than
// OMP_THREAD_LIMIT and OMP_MAX_ACTIVE_LEVELS allow.
void set_thread_count(int n);
int thread_count();

// Calls body(i) for i in [0, n) on all threads, contiguous ranges, no order promised; nested calls
// run serially. An exception thrown by a body is rethrown by the caller.
template <typename Body>
void parallel_for(int64_t n, const Body& body);

// Contiguous range [begin, end) of part `index` out of `parts` over n items, multiples of `grain`.
struct Range {
  int64_t begin, end;
};
Range split(int64_t n, int parts, int index, int64_t grain = 1);

}  // namespace sol

#include "base/threads_inl.h"
