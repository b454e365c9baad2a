// oneDNN's matmul under its second and its third API.
#pragma once

#include <cstddef>
#include <dnnl.hpp>

namespace sol::kernels {

const dnnl::engine& dnnl_cpu();

// dst = src x weights, to be run with a DNNL_ARG_SCRATCHPAD of scratchpad_desc(): working memory of
// the library's own would belong to the thread that compiles, and be shared by all that run at
// once. Throws dnnl::error where the library has no such product.
dnnl::matmul::primitive_desc describe_matmul(const dnnl::memory::desc& src,
                                             const dnnl::memory::desc& weights,
                                             const dnnl::memory::desc& dst,
                                             dnnl::primitive_attr attributes = {});

// Memory for a scratchpad of so many bytes: the calling thread's, valid until its next call.
void* dnnl_scratchpad(size_t bytes);

}  // namespace sol::kernels
