#include "base/threads.h"

#include <omp.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <cassert>

#include "base/fail.h"

namespace sol {
namespace {

// omp_get_num_procs honours the process's affinity mask.
int usable_processors() {
  return std::max(1, omp_get_num_procs());
}

// OpenMP keeps its own number per thread, so whoever starts a region says this one. 0: not set yet.
std::atomic<int> chosen{0};

}  // namespace

void set_thread_count(int n) {
  const int most = omp_get_thread_limit();
  if (n > most) fail("{} threads are asked for, but OMP_THREAD_LIMIT allows {}", n, most);
  chosen = n > 0 ? n : std::min(usable_processors(), most);
  omp_set_num_threads(chosen);  // for libraries called from this thread
}

int thread_count() {
  const int n = chosen;
  return n > 0 ? n : std::min(omp_get_max_threads(), omp_get_thread_limit());
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
