#include "base/threads.h"

#include <omp.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <cassert>

#include "base/fail.h"

namespace sol {
namespace {

// What OpenMP grants at most: OMP_THREAD_LIMIT, and one where OMP_MAX_ACTIVE_LEVELS is 0.
int most_threads() {
  return omp_get_max_active_levels() < 1 ? 1 : omp_get_thread_limit();
}

// OpenMP keeps its own number per thread, so whoever starts a region says this one. 0: not set yet.
std::atomic<int> chosen{0};

}  // namespace

int usable_processors() {
  return std::max(1, omp_get_num_procs());
}

void set_thread_count(int n) {
  const int most = most_threads();
  if (n > most)
    fail("{} threads are asked for, but OMP_THREAD_LIMIT and OMP_MAX_ACTIVE_LEVELS allow {}", n,
         most);
  chosen = n > 0 ? n : std::min(usable_processors(), most);
  omp_set_num_threads(chosen);  // for libraries called from this thread
}

int thread_count() {
  const int n = chosen;
  return n > 0 ? n : std::min(omp_get_max_threads(), most_threads());
}

Range split(int64_t n, int parts, int index, int64_t grain) {
  assert(n >= 0 && parts > 0 && index >= 0 && index < parts && grain > 0);
  const int64_t grains = (n + grain - 1) / grain;
  const int64_t base = grains / parts, extra = grains % parts;
  const int64_t first = index * base + std::min<int64_t>(index, extra);
  const int64_t last = first + base + (index < extra ? 1 : 0);
  return {std::min(first * grain, n), std::min(last * grain, n)};
}

}  // namespace sol
