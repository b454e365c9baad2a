// How many threads oneDNN plans for and starts.
#pragma once

#include <omp.h>

namespace sol::kernels {

// oneDNN takes as many as OpenMP would on the calling thread; this says how many for the time of a
// call.
class LibraryThreads {
 public:
  explicit LibraryThreads(int threads) : before_(omp_get_max_threads()) {
    omp_set_num_threads(threads);
  }
  ~LibraryThreads() { omp_set_num_threads(before_); }
  LibraryThreads(const LibraryThreads&) = delete;
  LibraryThreads& operator=(const LibraryThreads&) = delete;

 private:
  int before_;
};

}  // namespace sol::kernels
