// FrozenModel on the CPU: dense passes and batches through library products, single tokens through
// kernels that skip what the action drops.
#pragma once

#include <filesystem>
#include <mutex>
#include <string>

#include "engine/batch.h"
#include "engine/cpu_weights.h"
#include "kernels/matmul.h"
#include "sol/frozen_model.h"

namespace sol {

// One caller at a time: a pass uses all threads and the model's own working memory.
class CpuModel final : public FrozenModel {
 public:
  CpuModel(LlamaConfig config, TensorStore store, const ModelOptions& options);

  const LlamaConfig& config() const override { return config_; }
  const std::string& fingerprint() const override { return fingerprint_; }
  Precision precision() const override { return precision_; }
  uint64_t parameter_count() const override { return weights_->parameters; }
  WeightFormat weight_format() const override { return weights_->format; }
  std::vector<std::string> outside_paper() const override;

  std::unique_ptr<Sequence> create(const SequenceOptions& options) override;
  void extend(std::span<ExtendItem> items, std::stop_token stop) override;
  void decode(std::span<DecodeItem> items) override;
  std::vector<std::unique_ptr<Sequence>> fork(const Sequence& parent, int n) override;
  void truncate(Sequence& sequence, int length) override;
  CacheUse cache_use() const override;
  void embedding(int32_t token, std::span<float> out) const override;

  // For benchmarks. Bytes of weights that one token alone reads: all layers' under a share ρ of the
  // MLP's input channels, and the vocabulary head's.
  uint64_t layer_weight_bytes(float rho) const;
  uint64_t head_weight_bytes() const { return weights_->head_bytes; }
  // Bytes of weights that the last decode did not read, as no row kept their channels.
  uint64_t skipped_weight_bytes() const { return batch_.skipped_bytes; }
  // What products of a dense pass multiply: "f32", "bf16" or "int8".
  std::string_view product_type() const;
  // Every pass from now on adds its times to `times`; null ends that.
  void measure_stages(StageTimes* times) { batch_.clock.report_to(times); }

 private:
  // The forward pass, in the order in which it happens.
  void forward(Batch& batch);
  void cut_into_pieces(Batch& batch) const;
  void resize(Batch& batch) const;
  void embed_tokens(Batch& batch) const;
  void run_layer(int layer, Batch& batch) const;
  void project_qkv(const CpuLayer& layer, Batch& batch) const;
  void rotate(Batch& batch) const;
  void write_cache(int layer, Batch& batch) const;
  void run_mlp(const CpuLayer& layer, Batch& batch) const;
  void product_of_kept(Activations& x, Batch& batch, const kernels::WeightView& w,
                       const std::vector<float>& norms, Activations& y) const;
  bool zero_dropped(Activations& x, const Batch& batch, int width,
                    const std::vector<float>& norms) const;
  void quantise(Batch& batch) const;
  void count_weight_bytes(Batch& batch) const;
  void write_outputs(Batch& batch);

  // The library rounds to BF16, which an F32 model does not promise.
  kernels::MatmulMode attention_mode() const {
    return precision_ == Precision::bf16 ? mode_ : kernels::MatmulMode::own;
  }
  void normalise(const std::vector<float>& weight, Batch& batch) const;
  void product(const Activations& x, int rows, const kernels::WeightView& w, Activations& y) const;
  bool integer_product(const kernels::WeightView& w) const;
  void grow_rotary_table(int positions);
  const CpuSequence& own(const Sequence* sequence) const;
  CpuSequence& own(Sequence* sequence) const;

  LlamaConfig config_;
  std::string fingerprint_;
  Precision precision_ = Precision::f32;
  kernels::MatmulMode mode_;
  bool int8_activations_ = false;
  kernels::PageSummary page_summary_ = kernels::PageSummary::extrema;
  std::unique_ptr<CpuWeights> weights_;
  std::vector<float> inverse_frequencies_;
  std::vector<float> cos_, sin_;    // [position][head_dim / 2]
  mutable std::mutex pools_mutex_;  // cache_use() is asked while a pass runs
  std::vector<std::shared_ptr<BlockPool>> pools_;
  Batch batch_;  // working memory, kept between passes
  Activations head_input_, head_output_;
};

}  // namespace sol
