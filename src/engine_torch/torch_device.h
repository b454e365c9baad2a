// What every call into LibTorch needs: the device, threads, no gradients, its errors as ours.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/InferenceMode.h>

#include <string>
#include <vector>

#include "engine_torch/torch_threads.h"

namespace sol {

// Throws Error for a name other than cpu, cuda and cuda:N, and for a device that is not there.
at::Device find_device(const std::string& name);

// To be called while a c10::Error is being handled: throws it as an Error, which for memory that
// ran out says what to lower.
[[noreturn]] void rethrow_as_error(const at::Device& device);

template <typename Body>
auto torch_call(const at::Device& device, const Body& body) {
  const TorchThreads threads;
  const c10::InferenceMode no_gradients;
  try {
    return body();
  } catch (const c10::Error&) {
    rethrow_as_error(device);
  }
}

// Host values as a tensor of this shape on the device.
at::Tensor on_device(const std::vector<int64_t>& values, at::IntArrayRef shape,
                     const at::Device& device);
at::Tensor on_device(const std::vector<float>& values, at::IntArrayRef shape,
                     const at::Device& device);

// Largest number of bytes that the device's allocator has held so far; 0 where nobody counts them
// (the CPU, or a LibTorch without CUDA).
uint64_t peak_bytes(const at::Device& device);

}  // namespace sol
