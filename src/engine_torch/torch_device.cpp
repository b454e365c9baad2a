#include "engine_torch/torch_device.h"

#include <ATen/Context.h>
#include <ATen/Functions.h>
#ifdef SOL_TORCH_CUDA
#include <c10/cuda/CUDACachingAllocator.h>
#endif
#include <torch/version.h>

#include <charconv>
#include <string_view>

#include "base/fail.h"
#include "engine_torch/torch_model.h"

namespace sol {
namespace {

struct Name {
  bool cuda;
  int index;
};

Name parse(const std::string& name) {
  constexpr std::string_view numbered = "cuda:";
  if (name == "cpu") return {false, 0};
  if (name == "cuda") return {true, 0};
  if (name.starts_with(numbered)) {
    int index = 0;
    const char *first = name.data() + numbered.size(), *last = name.data() + name.size();
    const auto [end, error] = std::from_chars(first, last, index);
    if (error == std::errc() && end == last && index >= 0 && *first != '-') return {true, index};
  }
  fail("device {}: is none; LibTorch's are cpu, cuda and cuda:N", name);
}

std::string problem_of(const Name& name) {
  if (!name.cuda) return "";
  if (!at::hasCUDA())
    return fmt::format(
        "this LibTorch ({}) has no CUDA; build with a LibTorch that has, or choose another device",
        TORCH_VERSION);
  const auto count = static_cast<int>(at::getNumGPUs());
  if (count == 0) return "CUDA finds no GPU on this machine";
  if (name.index >= count)
    return fmt::format("there is no such GPU: this machine has {}, numbered from 0", count);
  return "";
}

bool ran_out_of_memory(const c10::Error& error) {
  if (dynamic_cast<const c10::OutOfMemoryError*>(&error)) return true;
  // The CPU's allocator and the GPU's libraries say so in words only.
  const std::string_view text = error.what_without_backtrace();
  for (const char* words :
       {"can't allocate memory", "not enough memory", "out of memory", "ALLOC_FAILED"})
    if (text.find(words) != std::string_view::npos) return true;
  return false;
}

template <typename T>
at::Tensor copy_to(const std::vector<T>& values, at::IntArrayRef shape, at::ScalarType type,
                   const at::Device& device) {
  return at::from_blob(const_cast<T*>(values.data()), shape, at::TensorOptions().dtype(type))
      .to(device, type, /*non_blocking=*/false, /*copy=*/true);
}

}  // namespace

std::string torch_device_problem(const std::string& device) {
  return problem_of(parse(device));
}

at::Device find_device(const std::string& name) {
  const Name parsed = parse(name);
  const std::string problem = problem_of(parsed);
  if (!problem.empty()) fail("device {}: {}", name, problem);
  if (!parsed.cuda) return at::Device(at::kCPU);
  return at::Device(at::kCUDA, static_cast<c10::DeviceIndex>(parsed.index));
}

void rethrow_as_error(const at::Device& device) {
  try {
    throw;
  } catch (const c10::Error& error) {
    if (!ran_out_of_memory(error))
      fail("device {}: {}", device.str(), error.what_without_backtrace());
    fail(
        "device {}: out of memory; lower the number of sequences that are decoded together (in "
        "training rollout.batch or rollout.schedules) or the context's length, or choose "
        "--precision bf16 ({})",
        device.str(), error.what_without_backtrace());
  }
}

at::Tensor on_device(const std::vector<int64_t>& values, at::IntArrayRef shape,
                     const at::Device& device) {
  return copy_to(values, shape, at::kLong, device);
}

at::Tensor on_device(const std::vector<float>& values, at::IntArrayRef shape,
                     const at::Device& device) {
  return copy_to(values, shape, at::kFloat, device);
}

uint64_t peak_bytes([[maybe_unused]] const at::Device& device) {
#ifdef SOL_TORCH_CUDA
  if (device.is_cuda()) {
    const auto stats = c10::cuda::CUDACachingAllocator::getDeviceStats(device.index());
    return static_cast<uint64_t>(stats.reserved_bytes[0].peak);  // 0: of all sizes
  }
#endif
  return 0;
}

}  // namespace sol
