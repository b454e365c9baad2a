// oneDNN's matmul under its second and its third API.
#pragma once

#include <dnnl.hpp>

namespace sol::kernels {

// dst = src x weights. Throws dnnl::error where the library has no such product.
inline dnnl::matmul::primitive_desc describe_matmul(const dnnl::engine& engine,
                                                    const dnnl::memory::desc& src,
                                                    const dnnl::memory::desc& weights,
                                                    const dnnl::memory::desc& dst,
                                                    const dnnl::primitive_attr& attributes = {}) {
#if DNNL_VERSION_MAJOR >= 3
  return {engine, src, weights, dst, attributes};
#else
  return {dnnl::matmul::desc(src, weights, dst), attributes, engine};
#endif
}

}  // namespace sol::kernels
