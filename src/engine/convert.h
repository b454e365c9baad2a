// `sol convert`: a model directory whose weights lie in the file as the kernels want them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <stop_token>

#include "kernels/kernels.h"

namespace sol {

// Writes `to`, a directory that load_model uses in place, from the Hugging Face directory `from`:
// matrices as bf16, int8 or int4 with gate and up joined and transposed, and the files beside them
// (configuration, tokenizer). `to` appears as a whole or not at all. Works with the memory of one
// tensor. Throws Error when `to` holds something already, when `from` was converted itself, for
// anything wrong with it, and for a full disk; Cancelled when `stop` was requested.
// `progress` (tensors done, tensors in all) may be empty.
void convert_model(const std::filesystem::path& from, const std::filesystem::path& to,
                   kernels::WeightType type,
                   const std::function<void(int64_t, int64_t)>& progress = {},
                   std::stop_token stop = {});

}  // namespace sol
