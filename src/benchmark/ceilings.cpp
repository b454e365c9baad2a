#include "benchmark/ceilings.h"

#include <unistd.h>

#include <algorithm>
#include <dnnl.hpp>
#include <fstream>
#include <memory>

#include "base/cpu.h"
#include "base/fail.h"
#include "base/stopwatch.h"
#include "base/threads.h"
#include "engine/weight_memory.h"
#include "kernels/kernels.h"

namespace sol {
namespace {

constexpr int64_t kReadGrain = 128;  // integers (Kernels::largest_of)

uint64_t available_bytes() {
  const long pages = sysconf(_SC_AVPHYS_PAGES), size = sysconf(_SC_PAGESIZE);
  return pages > 0 && size > 0 ? static_cast<uint64_t>(pages) * static_cast<uint64_t>(size) : 0;
}

struct MatrixCase {
  const char* name;
  dnnl::memory::data_type source, weights, destination;
};

// Seconds of one product, the median of several; 0 when oneDNN has no fast way.
double product_seconds(const MatrixCase& c, int rows) {
  constexpr int size = 4096;
  using Desc = dnnl::memory::desc;
  using Tag = dnnl::memory::format_tag;
  const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  dnnl::stream stream(engine);
  const Desc source({rows, size}, c.source, Tag::ab);
  const Desc any_weights({size, size}, c.weights, Tag::any);
  const Desc destination({rows, size}, c.destination, Tag::ab);
  dnnl::matmul::primitive_desc description;
  try {
    description =
        dnnl::matmul::primitive_desc(dnnl::matmul::desc(source, any_weights, destination), engine);
  } catch (const dnnl::error&) {
    return 0;
  }
  if (std::string(description.impl_info_str()).find("ref") != std::string::npos) return 0;
  dnnl::memory x(source, engine), w(description.weights_desc(), engine), y(destination, engine);
  // Ones of any type: bytes that are finite numbers in all of them.
  for (const dnnl::memory* m : {&x, &w}) {
    std::fill_n(static_cast<unsigned char*>(m->get_data_handle()), m->get_desc().get_size(),
                static_cast<unsigned char>(1));
  }
  const dnnl::matmul product(description);
  std::vector<double> seconds;
  for (int i = 0; i < 8; ++i) {
    const Stopwatch watch;
    product.execute(stream, {{DNNL_ARG_SRC, x}, {DNNL_ARG_WEIGHTS, w}, {DNNL_ARG_DST, y}});
    stream.wait();
    if (i > 0) seconds.push_back(watch.seconds());  // the first one warms up
  }
  std::nth_element(seconds.begin(), seconds.begin() + 3, seconds.end());
  return seconds[3];
}

}  // namespace

uint64_t last_level_cache_bytes() {
  uint64_t largest = 0;
  for (const int name : {_SC_LEVEL4_CACHE_SIZE, _SC_LEVEL3_CACHE_SIZE, _SC_LEVEL2_CACHE_SIZE}) {
    const long bytes = sysconf(name);
    if (bytes > 0) largest = std::max(largest, static_cast<uint64_t>(bytes));
  }
  return largest;
}

std::vector<ReadRate> measure_read_rates(int max_threads) {
  const uint64_t wanted = std::max<uint64_t>(4 * last_level_cache_bytes(), uint64_t{1} << 30);
  const uint64_t bytes = std::min(wanted, available_bytes() / 2) / kReadGrain / 4 * kReadGrain * 4;
  if (bytes < 2 * last_level_cache_bytes()) {
    fail("the memory's speed cannot be measured: {} MiB are free, {} MiB are needed",
         available_bytes() >> 20, wanted >> 20);
  }
  // As weights lie: in huge pages where the system allows it.
  WeightMemory memory;
  int32_t* data = reinterpret_cast<int32_t*>(memory.allocate(bytes));
  const auto count = static_cast<int64_t>(bytes / sizeof(int32_t));
  const int before = thread_count();
  set_thread_count(max_threads);
  constexpr int64_t chunk = 1 << 18;  // 1 MiB: touched by the thread that reads it later
  parallel_for((count + chunk - 1) / chunk, [&](int64_t c) {
    const int64_t begin = c * chunk;
    std::fill_n(data + begin, std::min(chunk, count - begin), static_cast<int32_t>(c));
  });
  std::vector<ReadRate> rates;
  volatile int32_t sink = 0;
  for (int threads = 1; threads <= max_threads; ++threads) {
    set_thread_count(threads);
    double best = 0;
    for (int pass = 0; pass < 5; ++pass) {
      std::vector<int32_t> largest(static_cast<size_t>(threads));
      const Stopwatch watch;
      parallel_for(threads, [&](int64_t t) {
        const Range range = split(count, threads, static_cast<int>(t), kReadGrain);
        largest[static_cast<size_t>(t)] =
            kernels::kernels().largest_of(data + range.begin, range.end - range.begin);
      });
      best = std::max(best, static_cast<double>(bytes) / watch.seconds());
      for (const int32_t l : largest) sink = sink + l;
    }
    rates.push_back({threads, best});
  }
  set_thread_count(before);
  return rates;
}

std::vector<MatrixRate> measure_matrix_rates(int rows) {
  using Type = dnnl::memory::data_type;
  const MatrixCase cases[] = {{"f32", Type::f32, Type::f32, Type::f32},
                              {"bf16", Type::bf16, Type::bf16, Type::f32},
                              {"int8", Type::u8, Type::s8, Type::s32}};
  std::vector<MatrixRate> rates;
  for (const MatrixCase& c : cases) {
    const bool narrow = c.source == Type::bf16;
    if (narrow && !cpu_multiplies_bf16()) continue;  // oneDNN would emulate it
    const double seconds = product_seconds(c, rows);
    if (seconds > 0) rates.push_back({c.name, rows, 2.0 * rows * 4096.0 * 4096.0 / seconds});
  }
  return rates;
}

}  // namespace sol
