#include "benchmark/ceilings.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <dnnl.hpp>

#include "base/cpu.h"
#include "base/fail.h"
#include "base/large_memory.h"
#include "base/stopwatch.h"
#include "base/system_memory.h"
#include "base/threads.h"
#include "kernels/dnnl_matmul.h"
#include "kernels/kernels.h"
#include "kernels/library_threads.h"

namespace sol {
namespace {

constexpr int64_t kReadGrain = 128;  // integers (Kernels::largest_of)
constexpr int kSize = 4096;          // of the square weights

// Puts the number of threads back.
class ThreadCount {
 public:
  explicit ThreadCount(int threads) : before_(thread_count()) { set_thread_count(threads); }
  ~ThreadCount() { set_thread_count(before_); }
  ThreadCount(const ThreadCount&) = delete;
  ThreadCount& operator=(const ThreadCount&) = delete;

 private:
  int before_;
};

}  // namespace

uint64_t last_level_cache_bytes() {
  uint64_t largest = 0;
  for (const int name : {_SC_LEVEL4_CACHE_SIZE, _SC_LEVEL3_CACHE_SIZE, _SC_LEVEL2_CACHE_SIZE}) {
    const long bytes = sysconf(name);
    if (bytes > 0) largest = std::max(largest, static_cast<uint64_t>(bytes));
  }
  return largest;
}

// --- Reads ---

MemoryReader::MemoryReader(int max_threads, uint64_t wanted) {
  if (wanted == 0) wanted = std::max<uint64_t>(4 * last_level_cache_bytes(), uint64_t{1} << 30);
  constexpr uint64_t kGrainBytes = kReadGrain * sizeof(int32_t);
  const uint64_t bytes = std::min(wanted, available_memory() / 2) / kGrainBytes * kGrainBytes;
  if (bytes < std::min(wanted, 2 * last_level_cache_bytes()) / kGrainBytes * kGrainBytes) {
    fail("the memory's speed cannot be measured: {} MiB are free, {} MiB are needed",
         available_memory() >> 20, wanted >> 20);
  }
  // As weights lie: in huge pages where the system allows it.
  data_ = reinterpret_cast<int32_t*>(memory_.allocate(bytes));
  count_ = static_cast<int64_t>(bytes / sizeof(int32_t));
  const ThreadCount threads(max_threads);
  constexpr int64_t kChunk = 1 << 18;  // 1 MiB: touched by the thread that reads it later
  parallel_for((count_ + kChunk - 1) / kChunk, [&](int64_t c) {
    const int64_t begin = c * kChunk;
    std::fill_n(data_ + begin, std::min(kChunk, count_ - begin), static_cast<int32_t>(c));
  });
}

double MemoryReader::read() {
  const int threads = thread_count();
  std::vector<int32_t> largest(static_cast<size_t>(threads));
  const Stopwatch watch;
  parallel_for(threads, [&](int64_t t) {
    const Range range = split(count_, threads, static_cast<int>(t), kReadGrain);
    largest[static_cast<size_t>(t)] =
        kernels::kernels().largest_of(data_ + range.begin, range.end - range.begin);
  });
  const double seconds = watch.seconds();
  [[maybe_unused]] static volatile int32_t sink = 0;
  for (const int32_t l : largest) sink = sink + l;
  return static_cast<double>(count_) * sizeof(int32_t) / seconds;
}

// --- Products ---

struct MatrixMultiplier::Product {
  dnnl::stream stream{kernels::dnnl_cpu()};
  // As the engine's weights and activations lie.
  struct Matrix {
    LargeVector<std::byte> bytes;
    dnnl::memory memory;
  };
  Matrix x, w, y, scratchpad;
  dnnl::matmul primitive;

  // Ones of any type: bytes that are finite numbers in all of them.
  Matrix make(const dnnl::memory::desc& desc) const {
    Matrix matrix{LargeVector<std::byte>(desc.get_size(), std::byte{1}), {}};
    matrix.memory = dnnl::memory(desc, kernels::dnnl_cpu(), matrix.bytes.data());
    return matrix;
  }
};

MatrixMultiplier::MatrixMultiplier(const std::string& type) {
  if (type != "f32" && type != "bf16" && type != "int8") fail("no products of type {}", type);
  using Type = dnnl::memory::data_type;
  using Desc = dnnl::memory::desc;
  using Tag = dnnl::memory::format_tag;
  const std::array types = type == "f32"    ? std::array{Type::f32, Type::f32, Type::f32}
                           : type == "bf16" ? std::array{Type::bf16, Type::bf16, Type::f32}
                                            : std::array{Type::u8, Type::s8, Type::s32};
  if (type == "bf16" && !cpu_multiplies_bf16()) return;  // oneDNN would emulate it
  auto product = std::make_unique<Product>();
  const Desc source({rows, kSize}, types[0], Tag::ab);
  const Desc any_weights({kSize, kSize}, types[1], Tag::any);
  const Desc destination({rows, kSize}, types[2], Tag::ab);
  dnnl::matmul::primitive_desc description;
  try {
    description = kernels::describe_matmul(source, any_weights, destination);
  } catch (const dnnl::error&) {
    return;
  }
  if (std::string(description.impl_info_str()).find("ref") != std::string::npos) return;
  product->x = product->make(source);
  product->w = product->make(description.weights_desc());
  product->y = product->make(destination);
  product->scratchpad = product->make(description.scratchpad_desc());
  product->primitive = dnnl::matmul(description);
  product_ = std::move(product);
}

MatrixMultiplier::~MatrixMultiplier() = default;
MatrixMultiplier::MatrixMultiplier(MatrixMultiplier&&) noexcept = default;
MatrixMultiplier& MatrixMultiplier::operator=(MatrixMultiplier&&) noexcept = default;

double MatrixMultiplier::multiply() {
  if (!available()) fail("this processor does not multiply matrices of that type");
  Product& p = *product_;
  const kernels::LibraryThreads threads(thread_count());
  const Stopwatch watch;
  p.primitive.execute(p.stream, {{DNNL_ARG_SRC, p.x.memory},
                                 {DNNL_ARG_WEIGHTS, p.w.memory},
                                 {DNNL_ARG_DST, p.y.memory},
                                 {DNNL_ARG_SCRATCHPAD, p.scratchpad.memory}});
  p.stream.wait();
  return 2.0 * rows * kSize * kSize / watch.seconds();
}

// --- Both ---

Ceilings measure_ceilings(MemoryReader& reader, std::vector<int> threads) {
  if (threads.empty()) fail("measure_ceilings: no number of threads given");
  const int max_threads = *std::ranges::max_element(threads);
  for (int n = 1; n < max_threads; n *= 2) threads.push_back(n);
  std::ranges::sort(threads);
  threads.erase(std::ranges::unique(threads).begin(), threads.end());
  Ceilings ceilings;
  for (const int n : threads) {
    const ThreadCount set(n);
    double best = 0;
    for (int pass = 0; pass < 5; ++pass) best = std::max(best, reader.read());
    ceilings.reads.push_back({n, best});
  }
  const ThreadCount set(max_threads);
  for (const char* type : {"f32", "bf16", "int8"}) {
    MatrixMultiplier multiplier(type);
    if (!multiplier.available()) continue;
    multiplier.multiply();  // warms up
    std::vector<double> rates;
    for (int i = 0; i < 7; ++i) rates.push_back(multiplier.multiply());
    std::nth_element(rates.begin(), rates.begin() + 3, rates.end());
    ceilings.products.push_back({type, MatrixMultiplier::rows, rates[3]});
  }
  return ceilings;
}

}  // namespace sol
