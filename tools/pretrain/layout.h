// Where each weight of a Llama lies in one flat array of floats.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "sol/config.h"

namespace sol::pretrain {

// One tensor of the Hugging Face file; [rows, columns] row-major, columns 0 for a vector of `rows`.
struct NamedSlice {
  std::string name;
  int64_t offset = 0;
  int64_t rows = 0, columns = 0;
  int64_t count() const { return rows * (columns > 0 ? columns : 1); }
};

// Matrices first, so that weight decay is one range; query, key and value rows side by side, gate
// and up likewise, so that each group is one product.
class Layout {
 public:
  explicit Layout(const LlamaConfig& config);

  struct Layer {
    int64_t qkv;                    // [(heads + 2 kv_heads) * head_dim, d]
    int64_t o;                      // [d, heads * head_dim]
    int64_t gate_up;                // [2 * intermediate, d]
    int64_t down;                   // [d, intermediate]
    int64_t input_norm, post_norm;  // [d]
  };
  int64_t embedding = 0, head = 0;  // [vocab, d]; the same when tied
  int64_t final_norm = 0;
  std::vector<Layer> layers;

  int64_t size() const { return size_; }
  int64_t matrices_end() const { return matrices_end_; }
  int64_t layers_begin() const { return layers_begin_; }  // matrices of layers: from here to there
  std::vector<NamedSlice> layer_matrices() const;
  const std::vector<NamedSlice>& slices() const { return slices_; }

 private:
  int64_t add(const std::string& name, int64_t rows, int64_t columns);
  int64_t size_ = 0, layers_begin_ = 0, matrices_end_ = 0;
  std::vector<NamedSlice> slices_;
};

// Fresh weights: normal, deviation 0.02, those that write to the residual stream 0.02/sqrt(2 L);
// norms are one. The same for every machine.
std::vector<float> initial_weights(const LlamaConfig& config, const Layout& layout, uint64_t seed);

// The weights of a Hugging Face directory of this configuration. Throws Error naming what is
// missing or of another shape.
std::vector<float> load_weights(const std::filesystem::path& dir, const LlamaConfig& config,
                                const Layout& layout);

// Writes DIR/model.safetensors, as BF16 (rounded to nearest even) or F32, atomically.
void save_weights(const std::filesystem::path& dir, const Layout& layout,
                  const std::vector<float>& weights, bool f32);

// Floating-point operations that training takes for one token in windows of this length: products
// of the forward and both backward passes, attention over the causal half only.
double training_flops(const LlamaConfig& config, int window);

}  // namespace sol::pretrain
