#include "kernels/dnnl_matmul.h"

#include "base/large_memory.h"

namespace sol::kernels {

const dnnl::engine& dnnl_cpu() {
  static const dnnl::engine cpu(dnnl::engine::kind::cpu, 0);
  return cpu;
}

dnnl::matmul::primitive_desc describe_matmul(const dnnl::memory::desc& src,
                                             const dnnl::memory::desc& weights,
                                             const dnnl::memory::desc& dst,
                                             dnnl::primitive_attr attributes) {
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
#if DNNL_VERSION_MAJOR >= 3
  return {dnnl_cpu(), src, weights, dst, attributes};
#else
  return {dnnl::matmul::desc(src, weights, dst), attributes, dnnl_cpu()};
#endif
}

void* dnnl_scratchpad(size_t bytes) {
  thread_local LargeVector<std::byte> memory;
  if (memory.size() < bytes) memory.resize(bytes);
  return memory.data();
}

}  // namespace sol::kernels
