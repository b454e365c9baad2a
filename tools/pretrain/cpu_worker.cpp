#include "cpu_worker.h"

#include <algorithm>
#include <cmath>

#include "loops.h"
#include "product.h"

namespace sol::pretrain {
namespace {

// Rows at a time through the wide products, so that what they write is still in the level-2 cache
// when it is read.
constexpr int64_t mlp_rows = 256;
constexpr int64_t head_rows = 128;

template <typename Body>
void in_chunks(int64_t n, int64_t chunk, const Body& body) {
  for (int64_t first = 0; first < n; first += chunk) body(first, std::min(chunk, n - first));
}

}  // namespace

CpuModel::CpuModel(const LlamaConfig& c, std::vector<float> w)
    : config(c), layout(c), weights(std::move(w)), rounded(weights.size()) {
  std::ranges::transform(weights, rounded.begin(), to_bf16);
}

CpuWorker::CpuWorker(const CpuModel& model, int window)
    : model_(model),
      n_(window),
      d_(model.config.hidden_size),
      f_(model.config.intermediate_size),
      attention_(
          {window, model.config.num_heads, model.config.num_kv_heads, model.config.head_dim}),
      layers_(model.layout.layers.size()) {
  const auto rows = [&](auto& v, int64_t columns) { v.resize(static_cast<size_t>(n_ * columns)); };
  const std::vector<float> frequencies = rotary_inverse_frequencies(model.config);
  for (int64_t i = 0; i < n_; ++i)
    for (const float frequency : frequencies) {
      cosines_.push_back(std::cos(static_cast<float>(i) * frequency));
      sines_.push_back(std::sin(static_cast<float>(i) * frequency));
    }
  for (Layer& l : layers_) {
    for (auto* v : {&l.x, &l.middle}) rows(*v, d_);
    for (auto* v : {&l.input_scale, &l.post_scale}) rows(*v, 1);
    for (auto* v : {&l.input, &l.post}) rows(*v, d_);
    rows(l.qkv, model.qkv_width());
    rows(l.mixed, model.width());
    rows(l.gate_up, 2 * f_);
    rows(l.lse, model.config.num_heads);
  }
  for (auto* v : {&last_, &gx_}) rows(*v, d_);
  rows(last_scale_, 1);
  for (auto* v : {&final_, &narrow_, &gx16_}) rows(*v, d_);
  for (auto* v : {&act_, &dact_}) rows(*v, f_);
  rows(dgate_up_, 2 * f_);
  rows(dqkv_, model.qkv_width());
  rows(dmixed_, model.width());
  rows(probabilities_, model.config.vocab_size);
  logits_.resize(static_cast<size_t>(head_rows) * model.config.vocab_size);
}

void CpuWorker::run_layers(std::span<const int32_t> ids) {
  const CpuModel& m = model_;
  const float eps = static_cast<float>(m.config.rms_norm_eps);
  const float* w = m.weights.data();
  const int64_t qkv = m.qkv_width(), width = m.width();
  for (int64_t i = 0; i < n_; ++i)
    std::copy_n(w + m.layout.embedding + ids[static_cast<size_t>(i)] * d_, d_,
                layers_[0].x.data() + i * d_);
  rms_norm(layers_[0].x.data(), w + m.layout.layers[0].input_norm, n_, d_, eps,
           layers_[0].input.data(), layers_[0].input_scale.data());
  for (size_t k = 0; k < layers_.size(); ++k) {
    Layer& l = layers_[k];
    const Layout::Layer& at = m.layout.layers[k];
    multiply(rows_of(l.input.data(), d_), transposed(weight(at.qkv), d_), n_, d_, qkv, l.qkv.data(),
             qkv);
    rotate(l.qkv.data(), n_, qkv, m.config.num_heads + m.config.num_kv_heads, m.config.head_dim,
           static_cast<int>(n_), cosines_.data(), sines_.data(), 1);
    attention_.forward(l.qkv.data(), l.mixed.data(), l.lse.data());
    multiply(rows_of(l.mixed.data(), width), transposed(weight(at.o), width), n_, width, d_,
             narrow_.data(), d_);
    add_rms_norm(l.x.data(), narrow_.data(), w + at.post_norm, n_, d_, eps, l.middle.data(),
                 l.post.data(), l.post_scale.data());
    in_chunks(n_, mlp_rows, [&](int64_t i, int64_t rows) {
      bf16 *gate_up = l.gate_up.data() + i * 2 * f_, *act = act_.data();
      multiply(rows_of(l.post.data() + i * d_, d_), transposed(weight(at.gate_up), d_), rows, d_,
               2 * f_, gate_up, 2 * f_);
      swiglu(gate_up, rows, f_, act);
      multiply(rows_of(act, f_), transposed(weight(at.down), f_), rows, f_, d_,
               narrow_.data() + i * d_, d_);
    });
    const bool last = k + 1 == layers_.size();
    add_rms_norm(l.middle.data(), narrow_.data(),
                 w + (last ? m.layout.final_norm : m.layout.layers[k + 1].input_norm), n_, d_, eps,
                 last ? last_.data() : layers_[k + 1].x.data(),
                 last ? final_.data() : layers_[k + 1].input.data(),
                 last ? last_scale_.data() : layers_[k + 1].input_scale.data());
  }
}

// Losses and, where wanted, the gradients of the head and of its input, which goes to narrow_.
void CpuWorker::head(std::span<const int32_t> ids, float scale, float* losses, float* gradients) {
  const int64_t vocab = model_.config.vocab_size;
  const bf16* w = weight(model_.layout.head);
  in_chunks(n_, head_rows, [&](int64_t i, int64_t rows) {
    multiply(rows_of(final_.data() + i * d_, d_), transposed(w, d_), rows, d_, vocab,
             logits_.data(), vocab, false);
    bf16* p = gradients ? probabilities_.data() + i * vocab : nullptr;
    cross_entropy(logits_.data(), ids.data() + 1 + i, rows, vocab, scale, losses + i, p);
    if (p)
      multiply(rows_of(p, vocab), rows_of(w, d_), rows, vocab, d_, narrow_.data() + i * d_, d_);
  });
  if (gradients)
    multiply(transposed(probabilities_.data(), vocab), rows_of(final_.data(), d_), vocab, n_, d_,
             gradients + model_.layout.head, d_, true);
}

void CpuWorker::mlp_backward(size_t k, float* gradients) {
  const Layout::Layer& at = model_.layout.layers[k];
  Layer& l = layers_[k];
  in_chunks(n_, mlp_rows, [&](int64_t i, int64_t rows) {
    bf16 *dact = dact_.data() + i * f_, *dgate_up = dgate_up_.data() + i * 2 * f_;
    multiply(rows_of(gx16_.data() + i * d_, d_), rows_of(weight(at.down), f_), rows, d_, f_, dact,
             f_);
    swiglu_backward(l.gate_up.data() + i * 2 * f_, dact, rows, f_, act_.data() + i * f_, dgate_up);
    multiply(rows_of(dgate_up, 2 * f_), rows_of(weight(at.gate_up), d_), rows, 2 * f_, d_,
             narrow_.data() + i * d_, d_);
  });
  multiply(transposed(gx16_.data(), d_), rows_of(act_.data(), f_), d_, n_, f_, gradients + at.down,
           f_, true);
  multiply(transposed(dgate_up_.data(), 2 * f_), rows_of(l.post.data(), d_), 2 * f_, n_, d_,
           gradients + at.gate_up, d_, true);
  rms_norm_backward(narrow_.data(), l.middle.data(), l.post_scale.data(),
                    model_.weights.data() + at.post_norm, n_, d_, gx_.data(), gx16_.data(),
                    gradients + at.post_norm);
}

void CpuWorker::attention_backward(size_t k, float* gradients) {
  const Layout::Layer& at = model_.layout.layers[k];
  const int64_t qkv = model_.qkv_width(), width = model_.width();
  Layer& l = layers_[k];
  multiply(rows_of(gx16_.data(), d_), rows_of(weight(at.o), width), n_, d_, width, dmixed_.data(),
           width);
  multiply(transposed(gx16_.data(), d_), rows_of(l.mixed.data(), width), d_, n_, width,
           gradients + at.o, width, true);
  attention_.backward(l.qkv.data(), l.mixed.data(), l.lse.data(), dmixed_.data(), dqkv_.data());
  rotate(dqkv_.data(), n_, qkv, model_.config.num_heads + model_.config.num_kv_heads,
         model_.config.head_dim, static_cast<int>(n_), cosines_.data(), sines_.data(), -1);
  multiply(rows_of(dqkv_.data(), qkv), rows_of(weight(at.qkv), d_), n_, qkv, d_, narrow_.data(),
           d_);
  multiply(transposed(dqkv_.data(), qkv), rows_of(l.input.data(), d_), qkv, n_, d_,
           gradients + at.qkv, d_, true);
  rms_norm_backward(narrow_.data(), l.x.data(), l.input_scale.data(),
                    model_.weights.data() + at.input_norm, n_, d_, gx_.data(), gx16_.data(),
                    gradients + at.input_norm);
}

void CpuWorker::forward(std::span<const int32_t> ids, float* losses) {
  run_layers(ids);
  head(ids, 0, losses, nullptr);
}

void CpuWorker::forward_backward(std::span<const int32_t> ids, float scale, float* losses,
                                 float* gradients) {
  run_layers(ids);
  head(ids, scale, losses, gradients);
  std::ranges::fill(gx_, 0.0f);
  rms_norm_backward(narrow_.data(), last_.data(), last_scale_.data(),
                    model_.weights.data() + model_.layout.final_norm, n_, d_, gx_.data(),
                    gx16_.data(), gradients + model_.layout.final_norm);
  for (size_t k = layers_.size(); k-- > 0;) {
    mlp_backward(k, gradients);
    attention_backward(k, gradients);
  }
  for (int64_t i = 0; i < n_; ++i)
    add_to(gx_.data() + i * d_, d_,
           gradients + model_.layout.embedding + ids[static_cast<size_t>(i)] * d_);
}

}  // namespace sol::pretrain
