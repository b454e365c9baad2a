// What the machine can do: the limits that every other figure is compared with.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace sol {

struct ReadRate {
  int threads;
  double bytes_per_second;  // the best of several passes
};
struct MatrixRate {
  std::string type;  // "bf16", "int8", "f32"
  int rows;
  double operations_per_second;  // multiplications and additions
};

// Size of the last-level cache in bytes, 0 where the system does not say.
uint64_t last_level_cache_bytes();

// Sustained reads from memory with 1..max_threads threads, on a working set of four last-level
// caches (at least 1 GiB, at most half of the free memory). Throws Error when that much memory is
// not there.
std::vector<ReadRate> measure_read_rates(int max_threads);

// Products [rows, 4096] x [4096, 4096] through oneDNN on all threads, in the layout that it likes
// best. A type that the processor does not multiply is left out.
std::vector<MatrixRate> measure_matrix_rates(int rows = 1024);

}  // namespace sol
