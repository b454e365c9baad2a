// clang wants this type complete before ATen.h uses it in templates.
// clang-format off
#include <ATen/core/ivalue.h>
#include <ATen/ATen.h>
// clang-format on
#include <ATen/Parallel.h>
#include <torch/version.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/fail.h"
#include "base/threads.h"
#include "engine.h"
#include "layout.h"
#include "muon.h"

namespace sol::pretrain {
namespace {

using at::Tensor;

class NoGradient {
 public:
  NoGradient() : old_(at::GradMode::is_enabled()) { at::GradMode::set_enabled(false); }
  ~NoGradient() { at::GradMode::set_enabled(old_); }
  NoGradient(const NoGradient&) = delete;
  NoGradient& operator=(const NoGradient&) = delete;

 private:
  bool old_;
};

at::Device make_device(const std::string& name) {
  if (name == "cuda" && !at::hasCUDA())
    fail("this build of LibTorch has no CUDA device; train with --device cpu");
  return at::Device(name);
}

class TorchEngine final : public Engine {
 public:
  TorchEngine(const LlamaConfig& config, const std::vector<float>& weights,
              const std::string& device, bool bf16, int micro_batch)
      : config_(config),
        layout_(config),
        device_(make_device(device)),
        type_(bf16 ? at::kBFloat16 : at::kFloat),
        micro_batch_(micro_batch) {
    at::set_num_threads(thread_count());
    flat_ = to_device(weights);
    gradient_ = at::zeros_like(flat_);
    first_ = at::zeros_like(flat_);
    second_ = at::zeros_like(flat_);
    const std::vector<float> frequencies = rotary_inverse_frequencies(config);
    inverse_frequencies_ = to_device(frequencies);
    make_leaves();
  }

  double accumulate(const Batch& batch) override {
    const double targets = static_cast<double>(batch.windows() * batch.window);
    double sum = 0;
    for (int64_t i = 0; i < batch.windows(); i += micro_batch_) {
      const Tensor ids = part(batch, i);
      const Tensor loss = token_losses(ids).sum() / targets;
      loss.backward();
      sum += loss.item<double>();
    }
    return sum;
  }

  std::vector<float> losses(const Batch& batch) override {
    const NoGradient guard;
    std::vector<float> out;
    for (int64_t i = 0; i < batch.windows(); i += micro_batch_) {
      const std::vector<float> values = to_host(token_losses(part(batch, i)));
      out.insert(out.end(), values.begin(), values.end());
    }
    return out;
  }

  double step(const OptimizerSettings& s) override {
    const NoGradient guard;
    const double norm = std::sqrt(gradient_.square().sum(at::kDouble).item<double>());
    if (!std::isfinite(norm)) fail("the gradient's norm is {}: lower the learning rate", norm);
    ++steps_;
    gradient_.mul_(std::min(1.0, s.clip / (norm + 1e-6)));
    const auto correction = [&](double beta) {
      return 1 - std::pow(beta, static_cast<double>(steps_));
    };
    flat_.narrow(0, 0, layout_.matrices_end()).mul_(1 - s.learning_rate * s.weight_decay);
    const int64_t begin = layout_.layers_begin(), end = layout_.matrices_end();
    const auto adamw = [&](int64_t from, int64_t to) {
      const auto part = [&](const Tensor& t) { return t.narrow(0, from, to - from); };
      const Tensor g = part(gradient_), m = part(first_), v = part(second_);
      m.mul_(s.beta1).add_(g, 1 - s.beta1);
      v.mul_(s.beta2).addcmul_(g, g, 1 - s.beta2);
      const Tensor deviation = v.sqrt().div_(std::sqrt(correction(s.beta2))).add_(s.epsilon);
      part(flat_).addcdiv_(m, deviation, -s.learning_rate / correction(s.beta1));
    };
    if (s.muon) {
      adamw(0, begin);
      for (const NamedSlice& matrix : layout_.layer_matrices()) muon(matrix, s.learning_rate);
      adamw(end, layout_.size());
    } else {
      adamw(0, layout_.size());
    }
    gradient_.zero_();
    return norm;
  }

  std::vector<float> gradients() const override { return to_host(gradient_); }
  EngineState state() const override {
    return {to_host(flat_), to_host(first_), to_host(second_), steps_};
  }
  void restore(const EngineState& state) override {
    const NoGradient guard;
    flat_.copy_(to_device(state.weights));
    first_.copy_(to_device(state.first));
    second_.copy_(to_device(state.second));
    gradient_.zero_();
    steps_ = state.steps;
  }
  std::string describe() const override {
    return fmt::format("LibTorch {} on {}, {}", TORCH_VERSION, device_.str(),
                       type_ == at::kFloat ? "F32" : "BF16 products");
  }

 private:
  struct Layer {
    Tensor qkv, o, gate_up, down, input_norm, post_norm;
  };

  void muon(const NamedSlice& s, double rate) {
    const auto part = [&](const Tensor& t) {
      return t.narrow(0, s.offset, s.count()).view({s.rows, s.columns});
    };
    const Tensor g = part(gradient_), m = part(first_);
    m.mul_(muon_momentum).add_(g);
    Tensor x = g.add(m, muon_momentum);
    if (s.rows > s.columns) x = x.t();
    x = x / (x.norm() + 1e-20);
    for (int step = 0; step < muon_steps; ++step) {
      const Tensor gram = at::matmul(x, x.t());
      x = muon_a * x + at::matmul(muon_b * gram + muon_c * at::matmul(gram, gram), x);
    }
    if (s.rows > s.columns) x = x.t();
    const auto side = static_cast<double>(std::max(s.rows, s.columns));
    part(flat_).add_(x, -rate * muon_scale * std::sqrt(side));
  }

  // A weight as a leaf of its own that shares the flat arrays' memory, its gradient included:
  // narrowing the flat array instead would make a gradient of full size for each piece.
  Tensor leaf(int64_t offset, int64_t rows, int64_t columns) {
    const std::vector<int64_t> shape =
        columns > 0 ? std::vector<int64_t>{rows, columns} : std::vector<int64_t>{rows};
    const int64_t count = rows * std::max<int64_t>(columns, 1);
    Tensor out = flat_.narrow(0, offset, count).view(shape).detach();
    out.set_requires_grad(true);
    out.mutable_grad() = gradient_.narrow(0, offset, count).view(shape);
    return out;
  }

  void make_leaves() {
    const int64_t d = config_.hidden_size, f = config_.intermediate_size;
    const int64_t q = int64_t{config_.num_heads} * config_.head_dim,
                  kv = int64_t{config_.num_kv_heads} * config_.head_dim;
    embedding_ = leaf(layout_.embedding, config_.vocab_size, d);
    head_ = config_.tie_word_embeddings ? embedding_ : leaf(layout_.head, config_.vocab_size, d);
    final_norm_ = leaf(layout_.final_norm, d, 0);
    for (const Layout::Layer& l : layout_.layers)
      layers_.push_back({leaf(l.qkv, q + 2 * kv, d), leaf(l.o, d, q), leaf(l.gate_up, 2 * f, d),
                         leaf(l.down, d, f), leaf(l.input_norm, d, 0), leaf(l.post_norm, d, 0)});
  }

  Tensor to_device(const std::vector<float>& values) const {
    Tensor host = at::empty({static_cast<int64_t>(values.size())}, at::kFloat);
    std::memcpy(host.data_ptr<float>(), values.data(), values.size() * sizeof(float));
    return host.to(device_);
  }
  std::vector<float> to_host(const Tensor& tensor) const {
    const Tensor host = tensor.detach().to(at::kCPU).contiguous();
    return {host.data_ptr<float>(), host.data_ptr<float>() + host.numel()};
  }
  Tensor part(const Batch& batch, int64_t first) const {
    const int64_t count = std::min<int64_t>(micro_batch_, batch.windows() - first);
    const int32_t* from = batch.ids.data() + first * (batch.window + 1);
    const Tensor ids = at::empty({count, batch.window + 1}, at::kLong);
    std::copy_n(from, ids.numel(), ids.data_ptr<int64_t>());
    return ids.to(device_);
  }

  Tensor linear(const Tensor& x, const Tensor& w) const {
    return at::linear(x.to(type_), w.to(type_));
  }
  Tensor norm(const Tensor& x, const Tensor& w) const {
    const Tensor scale = at::rsqrt(x.square().mean(-1, true) + config_.rms_norm_eps);
    return x * scale * w;
  }
  // x [windows, heads, window, dim] in F32, halves layout.
  static Tensor rotate(const Tensor& x, const Tensor& cosines, const Tensor& sines) {
    const auto halves = x.chunk(2, -1);
    return at::cat(
        {halves[0] * cosines - halves[1] * sines, halves[1] * cosines + halves[0] * sines}, -1);
  }

  Tensor attention(const Tensor& x, const Layer& l, const Tensor& cosines,
                   const Tensor& sines) const {
    const int64_t n = x.size(0), window = x.size(1), dim = config_.head_dim,
                  heads = config_.num_heads, kv_heads = config_.num_kv_heads;
    const auto parts =
        linear(x, l.qkv).split_with_sizes({heads * dim, kv_heads * dim, kv_heads * dim}, -1);
    const auto split = [&](const Tensor& t, int64_t count) {
      return t.view({n, window, count, dim}).transpose(1, 2);
    };
    const Tensor q = rotate(split(parts[0], heads).to(at::kFloat), cosines, sines).to(type_);
    const Tensor k = rotate(split(parts[1], kv_heads).to(at::kFloat), cosines, sines)
                         .to(type_)
                         .repeat_interleave(config_.group(), 1);
    const Tensor v = split(parts[2], kv_heads).repeat_interleave(config_.group(), 1);
#if TORCH_VERSION_MAJOR >= 2
    const Tensor mixed = at::scaled_dot_product_attention(q, k, v, {}, 0.0, true);
#else
    const Tensor later = at::ones({window, window}, at::device(device_).dtype(at::kBool)).triu(1);
    const Tensor scores =
        (at::matmul(q, k.transpose(-2, -1)).to(at::kFloat) / std::sqrt(static_cast<double>(dim)))
            .masked_fill(later, -std::numeric_limits<double>::infinity());
    const Tensor mixed = at::matmul(at::softmax(scores, -1).to(type_), v);
#endif
    return linear(mixed.transpose(1, 2).reshape({n, window, heads * dim}), l.o);
  }

  // ids [windows, window + 1] -> -log p of the targets [windows * window].
  Tensor token_losses(const Tensor& ids) const {
    const int64_t window = ids.size(1) - 1;
    const Tensor positions = at::arange(window, at::device(device_).dtype(at::kFloat));
    const Tensor angles = at::outer(positions, inverse_frequencies_);
    const Tensor cosines = angles.cos(), sines = angles.sin();
    Tensor x = at::embedding(embedding_, ids.narrow(1, 0, window));
    for (const Layer& l : layers_) {
      x = x + attention(norm(x, l.input_norm), l, cosines, sines).to(at::kFloat);
      const auto wide = linear(norm(x, l.post_norm), l.gate_up).chunk(2, -1);
      x = x + linear(at::silu(wide[0]) * wide[1], l.down).to(at::kFloat);
    }
    const Tensor logits =
        linear(norm(x, final_norm_), head_).to(at::kFloat).reshape({-1, config_.vocab_size});
    const Tensor targets = ids.narrow(1, 1, window).reshape({-1});
    return at::cross_entropy_loss(logits, targets, {}, at::Reduction::None);
  }

  LlamaConfig config_;
  Layout layout_;
  at::Device device_;
  at::ScalarType type_;
  int64_t micro_batch_;
  int64_t steps_ = 0;
  Tensor flat_, gradient_, first_, second_, inverse_frequencies_;
  Tensor embedding_, head_, final_norm_;
  std::vector<Layer> layers_;
};

}  // namespace

std::unique_ptr<Engine> make_torch_engine(const LlamaConfig& config, std::vector<float> weights,
                                          const std::string& device, bool bf16, int micro_batch) {
  return std::make_unique<TorchEngine>(config, weights, device, bf16, micro_batch);
}

}  // namespace sol::pretrain
