#include "product.h"

#include <omp.h>

#include <array>
#include <cstdlib>
#include <dnnl.hpp>
#include <map>
#include <memory>
#include <new>

#include "base/fail.h"

namespace sol::pretrain {
namespace {

using Type = dnnl::memory::data_type;
using Desc = dnnl::memory::desc;

const dnnl::engine& cpu() {
  static const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  return engine;
}

// m, k, n, the strides of a, b and c, F32 result, added to.
using Key = std::array<int64_t, 10>;

struct Product {
  dnnl::memory a, b, c, scratch;
  dnnl::matmul primitive;
};

// Compiled products and their scratch memory belong to a thread, as oneDNN wants it.
class Products {
 public:
  Product& get(const Key& key) {
    const auto found = products_.find(key);
    return found != products_.end() ? found->second
                                    : products_.emplace(key, make(key)).first->second;
  }
  dnnl::stream stream{cpu()};
  void* scratch() { return scratch_.get(); }

 private:
  Product make(const Key& key) {
    const auto [m, k, n, a_row, a_column, b_row, b_column, c_row, f32, add] = key;
    // oneDNN divides a product among as many threads as OpenMP says when it is made.
    const int threads = omp_get_max_threads();
    omp_set_num_threads(1);
    const Desc a({m, k}, Type::bf16, {a_row, a_column}), b({k, n}, Type::bf16, {b_row, b_column}),
        c({m, n}, f32 ? Type::f32 : Type::bf16, {c_row, 1});
    dnnl::primitive_attr attributes;
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    if (add) {
      dnnl::post_ops sum;
      sum.append_sum(1.0f);
      attributes.set_post_ops(sum);
    }
    const dnnl::matmul::primitive_desc description(dnnl::matmul::desc(a, b, c), attributes, cpu());
    // One after the other on a thread, so they share their scratch memory.
    const size_t needed = description.scratchpad_desc().get_size();
    if (needed > scratch_size_) {
      scratch_.reset(static_cast<std::byte*>(std::aligned_alloc(64, (needed + 63) / 64 * 64)));
      if (!scratch_) throw std::bad_alloc();
      scratch_size_ = needed;
    }
    Product out{dnnl::memory(a, cpu(), nullptr), dnnl::memory(b, cpu(), nullptr),
                dnnl::memory(c, cpu(), nullptr),
                dnnl::memory(description.scratchpad_desc(), cpu(), nullptr),
                dnnl::matmul(description)};
    omp_set_num_threads(threads);
    return out;
  }
  std::map<Key, Product> products_;
  struct Free {
    void operator()(std::byte* p) const { std::free(p); }
  };
  std::unique_ptr<std::byte, Free> scratch_;
  size_t scratch_size_ = 0;
};

void run(const View& a, const View& b, int64_t m, int64_t k, int64_t n, void* c, int64_t stride,
         bool f32, bool add) {
  thread_local Products products;
  try {
    Product& p = products.get({m, k, n, a.row, a.column, b.row, b.column, stride, f32, add});
    // oneDNN takes pointers to const nowhere; it does not write to what it reads.
    p.a.set_data_handle(const_cast<bf16*>(a.data));
    p.b.set_data_handle(const_cast<bf16*>(b.data));
    p.c.set_data_handle(c);
    p.scratch.set_data_handle(products.scratch());
    p.primitive.execute(products.stream, {{DNNL_ARG_SRC, p.a},
                                          {DNNL_ARG_WEIGHTS, p.b},
                                          {DNNL_ARG_DST, p.c},
                                          {DNNL_ARG_SCRATCHPAD, p.scratch}});
  } catch (const dnnl::error& error) {
    fail("oneDNN cannot multiply [{}, {}] by [{}, {}]: {} (status {})", m, k, k, n, error.what(),
         static_cast<int>(error.status));
  }
}

}  // namespace

void multiply(const View& a, const View& b, int64_t m, int64_t k, int64_t n, bf16* c,
              int64_t stride) {
  run(a, b, m, k, n, c, stride, false, false);
}

void multiply(const View& a, const View& b, int64_t m, int64_t k, int64_t n, float* c,
              int64_t stride, bool add) {
  run(a, b, m, k, n, c, stride, true, add);
}

}  // namespace sol::pretrain
