// How many threads oneDNN plans for and gets.
#pragma once

#include <omp.h>

namespace sol::kernels {

// oneDNN plans for as many as OpenMP would start on the calling thread; this says how many for the
// time of a call. It must get all of them, or what the others were to do would stay undone without
// an error: so OpenMP may not decide for fewer (OMP_DYNAMIC), and thread_count() is within the
// limit.
class LibraryThreads {
 public:
  explicit LibraryThreads(int threads)
      : before_(omp_get_max_threads()), dynamic_(omp_get_dynamic()) {
    omp_set_dynamic(0);
    omp_set_num_threads(threads);
  }
  ~LibraryThreads() {
    omp_set_num_threads(before_);
    omp_set_dynamic(dynamic_);
  }
  LibraryThreads(const LibraryThreads&) = delete;
  LibraryThreads& operator=(const LibraryThreads&) = delete;

 private:
  int before_, dynamic_;
};

}  // namespace sol::kernels
