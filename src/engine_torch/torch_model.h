// FrozenModel on a LibTorch device: dense products and attention by the library, actions exactly as
// docs/arithmetic.md defines them. No header of LibTorch is needed to use it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "model/safetensors.h"
#include "sol/frozen_model.h"

namespace sol {

// Loads a Hugging Face directory onto `device`: "cpu", "cuda" (the first GPU) or "cuda:N".
// Precision::automatic means bf16 for bf16 weights on a GPU, else f32. Throws Error as load_model
// does, and for a device that this LibTorch or machine does not have, a directory that `sol
// convert` wrote, and every option that this backend does not offer: deterministic, int8 and int4
// weights, int8 activations, prune_down, other channel or page scores. Running out of the device's
// memory, then or in any later call, is an Error that says what to lower; sequences keep their
// lengths.
std::unique_ptr<FrozenModel> load_torch_model(const std::filesystem::path& dir,
                                              const std::string& device,
                                              const ModelOptions& options = {});
std::unique_ptr<FrozenModel> make_torch_model(LlamaConfig config, TensorStore store,
                                              const std::string& device,
                                              const ModelOptions& options = {});

// Why `device` cannot be used here; empty where it can. Throws Error for a name that is none.
std::string torch_device_problem(const std::string& device);

}  // namespace sol
