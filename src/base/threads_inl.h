// Body of parallel_for; see threads.h.
#pragma once

#include <omp.h>

#include <exception>

namespace sol {

template <typename Body>
void parallel_for(int64_t n, const Body& body) {
  if (n <= 1 || omp_in_parallel()) {
    for (int64_t i = 0; i < n; ++i) body(i);
    return;
  }
  std::exception_ptr error;
#pragma omp parallel for schedule(static) num_threads(thread_count())
  for (int64_t i = 0; i < n; ++i) {
    try {
      body(i);
    } catch (...) {
#pragma omp critical(sol_parallel_for_error)
      if (!error) error = std::current_exception();
    }
  }
  if (error) std::rethrow_exception(error);
}

}  // namespace sol
