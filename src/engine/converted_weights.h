// A model directory that `sol convert` wrote: its matrices lie in the file as the kernels want them
// (docs/formats.md, "Converted model").
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/kernels.h"
#include "model/llama_weights.h"

namespace sol {

// What a converted file says about itself.
struct Conversion {
  static constexpr int format_version = 1;
  kernels::WeightType type = kernels::WeightType::bf16;  // bf16, int8 or int4
  DType source_type = DType::bf16;                       // of the original's matrices
  std::string fingerprint;                               // of the original model
};

// nullopt for a file that was not converted. Throws Error for another format version, a field that
// is missing or unknown, or a config.json that differs from the original's in its arithmetic.
std::optional<Conversion> conversion_of(const LlamaConfig& config, const TensorStore& store);

// The metadata to write, of which conversion_of makes the same again.
std::map<std::string, std::string> conversion_metadata(const LlamaConfig& config,
                                                       const Conversion& conversion);

// The fingerprint of the model, converted or not.
std::string fingerprint_of(const LlamaConfig& config, const TensorStore& store);

// A matrix of a converted file; its tensor is U8 [rows, row bytes] where compressed, else BF16
// [rows, columns].
struct ConvertedMatrix {
  const TensorView* tensor;
  kernels::WeightType type;
  kernels::Layout layout;
  int in, out;
};

struct ConvertedLayer {
  const TensorView *input_norm, *post_norm;
  ConvertedMatrix q, k, v, o, gate_up, down;
};

struct ConvertedWeights {
  ConvertedMatrix embedding, head;  // the same tensor when tied
  const TensorView* final_norm;
  std::vector<ConvertedLayer> layers;
};

// Throws Error naming a tensor that is missing, superfluous, misshapen or of the wrong type.
ConvertedWeights find_converted_weights(const LlamaConfig& config, const TensorStore& store,
                                        kernels::WeightType type);

// Throws Error naming the tensor for a scale or weight that is not finite or too large, a code that
// the format does not have, or memory that is not aligned as it says.
void check_converted(const ConvertedMatrix& matrix);

}  // namespace sol
