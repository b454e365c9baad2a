#include "kernels/matmul_dnnl.h"

#include <dnnl.hpp>
#include <map>
#include <mutex>
#include <string_view>
#include <tuple>
#include <vector>

#include "base/fail.h"
#include "base/threads.h"
#include "kernels/dnnl_matmul.h"
#include "kernels/library_threads.h"
#include "kernels/rounded_rows.h"

namespace sol::kernels {
namespace {

// oneDNN decides once per process, at the first primitive, which instructions it may use; whoever
// gets there first (LibTorch uses oneDNN too) may have decided otherwise, hence the question
// afterwards.
unsigned effective_isa() {
  static const unsigned isa = [] {
    if (current_isa() == Isa::avx2) dnnl_set_max_cpu_isa(dnnl_cpu_isa_avx2);
    return static_cast<unsigned>(dnnl_get_effective_cpu_isa());
  }();
  return isa;
}

}  // namespace

bool dnnl_multiplies(ElementType type) {
  const Isa isa = current_isa();
  if (isa == Isa::reference) return false;
  const unsigned effective = effective_isa();
  const auto includes = [&](unsigned bits) { return (effective & bits) == bits; };
  if (isa == Isa::avx2) return type == ElementType::f32 && !includes(dnnl_cpu_isa_avx512_core);
  return includes(type == ElementType::f32 ? dnnl_cpu_isa_avx512_core
                                           : dnnl_cpu_isa_avx512_core_bf16);
}

namespace {

struct Key {
  int rows, in, out, threads;
  int64_t x_stride, w_stride, y_stride;
  Layout layout;
  WeightType type;
  auto tied() const {
    return std::tie(rows, in, out, threads, x_stride, w_stride, y_stride, layout, type);
  }
  bool operator<(const Key& other) const { return tied() < other.tied(); }
};

struct Product {
  dnnl::memory::desc x, w, y, scratchpad;
  dnnl::matmul primitive;
  bool fast = false;  // not oneDNN's reference implementation
};

dnnl::memory::data_type type_of(WeightType type) {
  using Type = dnnl::memory::data_type;
  return type == WeightType::f32 ? Type::f32 : type == WeightType::bf16 ? Type::bf16 : Type::s8;
}

Product make_product(const Key& key) {
  using Desc = dnnl::memory::desc;
  const auto type = type_of(key.type);
  const dnnl::memory::dims w_strides = key.layout == Layout::in_major
                                           ? dnnl::memory::dims{key.w_stride, 1}
                                           : dnnl::memory::dims{1, key.w_stride};
  Product p;
  p.x = Desc({key.rows, key.in}, type, {key.x_stride, 1});
  p.w = Desc({key.in, key.out}, type, w_strides);
  p.y = Desc({key.rows, key.out}, dnnl::memory::data_type::f32, {key.y_stride, 1});
  const dnnl::matmul::primitive_desc description = describe_matmul(p.x, p.w, p.y);
  p.fast = std::string_view(description.impl_info_str()).find("ref") == std::string_view::npos;
  if (p.fast) p.primitive = dnnl::matmul(description);
  p.scratchpad = description.scratchpad_desc();
  return p;
}

// Compiled products by shape, for all threads. Handles are shared, so a copy stays valid when the
// map forgets; several threads may run one at once, each in memory of its own.
Product product_for(const Key& key) {
  static std::mutex mutex;
  static std::map<Key, Product> products;
  constexpr size_t kMost = 1024;
  const std::lock_guard lock(mutex);
  if (const auto found = products.find(key); found != products.end()) return found->second;
  if (products.size() >= kMost) products.clear();
  return products.emplace(key, make_product(key)).first->second;
}

// `x` holds rows of the weights' type, x_stride elements apart.
bool multiply(const void* x, int64_t x_stride, int rows, const WeightView& w, float* y,
              int64_t y_stride) {
  // Inside a parallel region the caller's thread only.
  const LibraryThreads threads(omp_in_parallel() ? 1 : thread_count());
  const Key key{rows,     w.in,     w.out, omp_get_max_threads(), x_stride, w.stride,
                y_stride, w.layout, w.type};
  try {
    const Product p = product_for(key);
    if (!p.fast) return false;
    const auto memory = [](const dnnl::memory::desc& desc, const void* data) {
      // oneDNN takes pointers to const nowhere; it does not write to arguments that it reads.
      return dnnl::memory(desc, dnnl_cpu(), const_cast<void*>(data));
    };
    thread_local dnnl::stream stream(dnnl_cpu());
    p.primitive.execute(stream, {{DNNL_ARG_SRC, memory(p.x, x)},
                                 {DNNL_ARG_WEIGHTS, memory(p.w, w.data)},
                                 {DNNL_ARG_DST, memory(p.y, y)},
                                 {DNNL_ARG_SCRATCHPAD,
                                  memory(p.scratchpad, dnnl_scratchpad(p.scratchpad.get_size()))}});
    stream.wait();
  } catch (const dnnl::error& error) {
    fail("oneDNN cannot multiply {} rows with a {} x {} matrix: {} (status {})", rows, w.in, w.out,
         error.what(), static_cast<int>(error.status));
  }
  return true;
}

}  // namespace

bool dnnl_matmul_rounded(const bf16* x, int rows, const WeightView& w, float* y, int64_t y_stride) {
  if (w.type != WeightType::bf16 || !dnnl_multiplies(ElementType::bf16)) return false;
  return multiply(x, w.in, rows, w, y, y_stride);
}

bool dnnl_code_sums(const int8_t* x, int64_t x_stride, int rows, const WeightView& w, float* y,
                    int64_t y_stride) {
  // Without these instructions oneDNN's sums of two products may overflow 16 bits.
  const unsigned exact = dnnl_cpu_isa_avx512_core_vnni;
  if (!has_avx512(current_isa()) || (effective_isa() & exact) != exact) return false;
  return multiply(x, x_stride, rows, w, y, y_stride);
}

bool dnnl_matmul(const float* x, int64_t x_stride, int rows, const WeightView& w, float* y,
                 int64_t y_stride) {
  if (w.type == WeightType::f32 && dnnl_multiplies(ElementType::f32))
    return multiply(x, x_stride, rows, w, y, y_stride);
  if (w.type == WeightType::bf16 && dnnl_multiplies(ElementType::bf16))
    return dnnl_matmul_rounded(rounded_rows(x, x_stride, rows, w.in, w.in), rows, w, y, y_stride);
  return false;
}

}  // namespace sol::kernels
