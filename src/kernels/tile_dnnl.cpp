#include "kernels/tile_dnnl.h"

#include <cstddef>
#include <dnnl.hpp>
#include <memory>
#include <unordered_map>
#include <vector>

#include "base/fail.h"
#include "kernels/dnnl_matmul.h"
#include "kernels/library_threads.h"
#include "kernels/matmul_dnnl.h"

namespace sol::kernels {
namespace {

using Desc = dnnl::memory::desc;
using Type = dnnl::memory::data_type;

// A compiled product with its arguments, made once: creating memory objects costs as much as a
// small product.
class Compiled {
 public:
  explicit Compiled(const TileProduct& s) : shape_(s) {
    const dnnl::memory::dims strides =
        s.b_layout == Layout::in_major ? dnnl::memory::dims{s.out, 1} : dnnl::memory::dims{1, s.in};
    const Desc a({s.rows, s.in}, Type::bf16, {s.a_stride, 1});
    const Desc b({s.in, s.out}, Type::bf16, strides);
    const Desc y({s.rows, s.out}, Type::f32, {s.y_stride, 1});
    dnnl::primitive_attr attributes;
    if (s.accumulate) {
      dnnl::post_ops sum;
      sum.append_sum(1.0f);
      attributes.set_post_ops(sum);
    }
    const dnnl::matmul::primitive_desc description = describe_matmul(a, b, y, attributes);
    product_ = dnnl::matmul(description);
    scratchpad_bytes_ = description.scratchpad_desc().get_size();
    a_ = dnnl::memory(a, dnnl_cpu(), nullptr);
    b_ = dnnl::memory(b, dnnl_cpu(), nullptr);
    y_ = dnnl::memory(y, dnnl_cpu(), nullptr);
    scratchpad_ = dnnl::memory(description.scratchpad_desc(), dnnl_cpu(), nullptr);
    arguments_ = {{DNNL_ARG_SRC, a_},
                  {DNNL_ARG_WEIGHTS, b_},
                  {DNNL_ARG_DST, y_},
                  {DNNL_ARG_SCRATCHPAD, scratchpad_}};
  }

  const TileProduct& shape() const { return shape_; }

  void run(dnnl::stream& stream, const bf16* a, const bf16* b, float* y) {
    // oneDNN takes pointers to const nowhere; it does not write to arguments that it reads.
    a_.set_data_handle(const_cast<bf16*>(a));
    b_.set_data_handle(const_cast<bf16*>(b));
    y_.set_data_handle(y);
    scratchpad_.set_data_handle(dnnl_scratchpad(scratchpad_bytes_));
    product_.execute(stream, arguments_);
  }

 private:
  TileProduct shape_;
  dnnl::matmul product_;
  dnnl::memory a_, b_, y_, scratchpad_;
  size_t scratchpad_bytes_ = 0;
  std::unordered_map<int, dnnl::memory> arguments_;
};

// This thread's compiled products; few shapes occur, so they are looked for one by one.
Compiled& compiled(const TileProduct& shape) {
  thread_local std::vector<std::unique_ptr<Compiled>> all;
  constexpr size_t kMost = 256;
  for (const auto& one : all)
    if (one->shape() == shape) return *one;
  if (all.size() >= kMost) all.clear();
  return *all.emplace_back(std::make_unique<Compiled>(shape));
}

}  // namespace

bool have_tile_products() {
  return dnnl_multiplies(ElementType::bf16);
}

void tile_product(const TileProduct& shape, const bf16* a, const bf16* b, float* y) {
  const LibraryThreads guard(1);
  try {
    thread_local dnnl::stream stream(dnnl_cpu());
    compiled(shape).run(stream, a, b, y);
    stream.wait();
  } catch (const dnnl::error& error) {
    fail("oneDNN cannot multiply {} rows with a {} x {} tile: {} (status {})", shape.rows, shape.in,
         shape.out, error.what(), static_cast<int>(error.status));
  }
}

}  // namespace sol::kernels
