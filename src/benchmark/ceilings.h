// What the machine can do: the limits that every other figure is compared with.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/weight_memory.h"

namespace sol {

struct ReadRate {
  int threads;
  double bytes_per_second;  // the best of several passes
};
struct MatrixRate {
  std::string type;  // "bf16", "int8", "f32"
  int rows;
  double operations_per_second;  // multiplications and additions, median of several products
};
struct Ceilings {
  std::vector<ReadRate> reads;  // one per number of threads
  std::vector<MatrixRate> products;
};

// Size of the last-level cache in bytes, 0 where the system does not say.
uint64_t last_level_cache_bytes();

// Sustained reads from memory, on a working set that lives as long as this: four last-level caches,
// at least 1 GiB, at most half of the free memory.
class MemoryReader {
 public:
  // For up to max_threads threads. Throws Error when twice the last-level cache is not free. Tests
  // may want less to be read.
  explicit MemoryReader(int max_threads, uint64_t bytes = 0);
  // Bytes per second of one pass over everything, shared out among the threads that are set.
  double read();

 private:
  WeightMemory memory_;
  int32_t* data_ = nullptr;
  int64_t count_ = 0;
};

// Products [1024, 4096] x [4096, 4096] through oneDNN, in the layout that it likes best.
class MatrixMultiplier {
 public:
  static constexpr int rows = 1024;

  explicit MatrixMultiplier(const std::string& type);  // "f32", "bf16" or "int8"
  ~MatrixMultiplier();
  MatrixMultiplier(MatrixMultiplier&&) noexcept;
  MatrixMultiplier& operator=(MatrixMultiplier&&) noexcept;

  // False where the processor does not multiply the type.
  bool available() const { return product_ != nullptr; }
  // Operations per second of one product on all threads that are set.
  double multiply();

 private:
  struct Product;
  std::unique_ptr<Product> product_;
};

// The machine alone: reads with these numbers of threads and with 1, 2, 4, ... below the largest,
// products with the largest.
Ceilings measure_ceilings(MemoryReader& reader, std::vector<int> threads);

}  // namespace sol
