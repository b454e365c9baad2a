// Models with random weights, in memory or on disk: speed depends on the shape only.
#pragma once

#include <filesystem>
#include <memory>
#include <span>
#include <stop_token>
#include <string_view>

#include "engine/cpu_model.h"
#include "model/safetensors.h"

namespace sol {

struct NamedShape {
  std::string_view name;
  std::string_view description;
  LlamaConfig config;
};

std::span<const NamedShape> named_shapes();
// Throws Error listing the names for one that is unknown.
const LlamaConfig& find_shape(std::string_view name);

// A model of that shape, its weights stored as `stored` (bf16 or f32): normal, with variance 1 /
// in. Whatever the engine uses in place has memory of its own; the sources of what it rearranges
// share theirs, so that a model of 8 B parameters needs its own size in memory, not twice.
std::unique_ptr<CpuModel> make_random_model(const LlamaConfig& config, DType stored,
                                            const ModelOptions& options);

// Such weights by themselves, for other backends: each tensor has memory of its own.
TensorStore make_random_weights(const LlamaConfig& config, DType stored);

// The same as a Hugging Face directory at `out`, which must not exist or be empty, with the
// tokenizer of the directory `tokenizer`; written tensor by tensor. Throws Error when the tokenizer
// has more tokens than the shape, or something cannot be written, Cancelled when `stop` was
// requested; nothing is left behind then.
void write_random_model(const LlamaConfig& config, DType stored,
                        const std::filesystem::path& tokenizer, const std::filesystem::path& out,
                        const std::stop_token& stop = {});

}  // namespace sol
