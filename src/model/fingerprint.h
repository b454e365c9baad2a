// An identity for a frozen model, so that a controller is never used with another one.
#pragma once

#include <string>

#include "model/safetensors.h"
#include "sol/config.h"

namespace sol {

// 32 hexadecimal digits of XXH3-128 over the configuration's arithmetic fields and, for every
// weight of the model (sorted by canonical name), its name, shape, dtype and a sample of its bytes
// spread over the whole tensor (all of it when small): every fine-tune changes almost every weight,
// so a sample tells models apart without reading gigabytes.
std::string model_fingerprint(const LlamaConfig& config, const TensorStore& store);

// The part of that which comes from the configuration: exactly what decides the numbers that come
// out; names, limits and token ids do not. One line without its end.
std::string arithmetic_fields(const LlamaConfig& config);

}  // namespace sol
