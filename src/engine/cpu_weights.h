// The frozen model's weights as the kernels want them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/converted_weights.h"
#include "engine/weight_memory.h"
#include "kernels/kernels.h"
#include "model/llama_weights.h"
#include "sol/frozen_model.h"

namespace sol {

struct CpuLayer {
  std::vector<float> input_norm, post_norm;
  kernels::WeightView q, k, v, o;  // [out][in], as in the file
  kernels::WeightView down;        // the same, or [in][out] where ρ chooses among its inputs too
  kernels::WeightView
      gate_up;  // [in][gate | up]: a channel that ρ drops is one row that is never read
  // Euclidean norms of their rows, where ρ ranks channels by them; else empty.
  std::vector<float> gate_up_norms, down_norms;
};

class CpuWeights {
 public:
  // Keeps the tensor store mapped: a matrix whose type and layout suit is used in place; another is
  // made from it row by row, so that no two whole copies are ever in private memory. Throws Error
  // naming the tensor and the index of a weight that is NaN or infinite, or for a format that
  // cannot be made of what the file holds or options that do not fit it.
  CpuWeights(const LlamaConfig& config, TensorStore store, Precision precision,
             const ModelOptions& options = {});

  std::vector<CpuLayer> layers;
  std::vector<float> final_norm;
  kernels::WeightView embedding;  // [vocab][d]
  kernels::WeightView head;       // [vocab][d], the embedding itself when tied

  WeightFormat format = WeightFormat::automatic;  // never automatic where there are codes
  uint64_t parameters = 0;                        // a tied head counted once
  // Of one layer, and of the head: as they lie in memory, scales included. Rows are those of one
  // input channel; a down projection that is not stored by channel counts among the fixed bytes.
  uint64_t layer_fixed_bytes = 0, gate_up_row_bytes = 0, down_row_bytes = 0, head_bytes = 0;

 private:
  void load_original(const LlamaWeights& found, bool prune_down);
  void load_converted(const ConvertedWeights& found);
  void count_bytes();
  void measure_rows();
  std::vector<float> vector_of(const TensorView& tensor);
  kernels::WeightView matrix(const TensorView& tensor, kernels::WeightType type);
  kernels::WeightView converted(const ConvertedMatrix& matrix, kernels::WeightType type);
  kernels::WeightView by_channel(std::span<const TensorView* const> matrices);
  kernels::WeightView held(const TensorView& tensor, kernels::Layout layout, int in, int out,
                           kernels::WeightType type);

  TensorStore store_;
  kernels::WeightType type_;
  WeightMemory memory_;
  bool in_place_ = false;  // something points into the store
};

// What Precision::automatic means for matrices stored as this: bf16 when the file has bf16 weights
// and the processor multiplies it, else f32, so that no weight is ever rounded without being asked
// for.
Precision resolve_precision(Precision requested, DType stored);
// What an original's matrices are held as; `precision` is a resolved one.
kernels::WeightType weight_type(Precision precision, WeightFormat format);
// What the matrices of this model, or of the one it was converted from, are stored as.
DType stored_type(const LlamaConfig& config, const TensorStore& store);

}  // namespace sol
