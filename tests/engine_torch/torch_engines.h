// LibTorch devices as the tests that hold for every backend want them.
#pragma once

#include "engine/engines.h"
#include "engine_torch/torch_model.h"

namespace sol::test {

// The key of a TorchSequence; here, so that only one file of the tests needs LibTorch's headers.
std::vector<float> torch_key(const Sequence& sequence, int layer, int head, int position);

inline Engine torch_engine(const std::string& device) {
  // The library's sums depend on the batch, so that more values fall to the other side of a tie: at
  // 5 bits one of them moved logits by 0.08. What κ and ρ select is compared without q
  // (torch_model_test.cpp).
  return {.name = device,
          .tolerance = 1e-4,
          .worst_quantised = 0.1,
          .most_quantised = 1e-2,
          .make =
              [device](LlamaConfig config, TensorStore store, Precision precision) {
                return make_torch_model(std::move(config), std::move(store), device, {precision});
              },
          .key = torch_key,
          .unavailable = torch_device_problem(device)};
}

}  // namespace sol::test
