#include <omp.h>

#include <algorithm>
#include <cmath>
#include <exception>
#include <map>

#include "base/cpu.h"
#include "base/fail.h"
#include "base/threads.h"
#include "cpu_worker.h"
#include "engine.h"
#include "kernels/matmul_dnnl.h"
#include "loops.h"
#include "muon.h"

namespace sol::pretrain {
namespace {

// Sums of fixed pieces, so that a result does not depend on the number of threads that add them.
constexpr int64_t piece = int64_t{1} << 16;

class CpuEngine final : public Engine {
 public:
  CpuEngine(const LlamaConfig& config, std::vector<float> weights)
      : model_(config, std::move(weights)) {
    state_.first.resize(model_.weights.size());
    state_.second.resize(model_.weights.size());
    gradients_.assign(static_cast<size_t>(thread_count()),
                      std::vector<float>(model_.weights.size()));
  }

  double accumulate(const Batch& batch) override {
    const auto scale =
        static_cast<float>(1.0 / static_cast<double>(batch.windows() * batch.window));
    std::vector<float> losses(static_cast<size_t>(batch.windows() * batch.window));
    for_each_window(batch, [&](CpuWorker& worker, int thread, int64_t i) {
      worker.forward_backward(batch.get(i), scale, losses.data() + i * batch.window,
                              gradients_[static_cast<size_t>(thread)].data());
    });
    double sum = 0;
    for (const float loss : losses) sum += loss;
    return sum / static_cast<double>(losses.size());
  }

  std::vector<float> losses(const Batch& batch) override {
    std::vector<float> out(static_cast<size_t>(batch.windows() * batch.window));
    for_each_window(batch, [&](CpuWorker& worker, int, int64_t i) {
      worker.forward(batch.get(i), out.data() + i * batch.window);
    });
    return out;
  }

  double step(const OptimizerSettings& settings) override {
    const int64_t n = model_.layout.size(), pieces = (n + piece - 1) / piece;
    std::vector<double> squares(static_cast<size_t>(pieces));
    parallel_for(pieces, [&](int64_t p) {
      const int64_t first = p * piece, count = std::min(piece, n - first);
      sum_threads(first, count);
      squares[static_cast<size_t>(p)] = square_sum(gradients_[0].data() + first, count);
    });
    double square = 0;
    for (const double s : squares) square += s;
    const double norm = std::sqrt(square);
    if (!std::isfinite(norm)) fail("the gradient's norm is {}: lower the learning rate", norm);
    ++state_.steps;
    const auto power = [&](double beta) {
      return static_cast<float>(1 - std::pow(beta, static_cast<double>(state_.steps)));
    };
    AdamWStep step{.rate = static_cast<float>(settings.learning_rate),
                   .beta1 = static_cast<float>(settings.beta1),
                   .beta2 = static_cast<float>(settings.beta2),
                   .epsilon = static_cast<float>(settings.epsilon),
                   .decay = static_cast<float>(settings.weight_decay),
                   .clip = static_cast<float>(std::min(1.0, settings.clip / (norm + 1e-6))),
                   .correction1 = power(settings.beta1),
                   .correction2 = power(settings.beta2)};
    if (settings.muon) {
      update(0, model_.layout.layers_begin(), step);
      update_by_muon(step);
    } else {
      update(0, model_.layout.matrices_end(), step);
    }
    step.decay = 0;
    update(model_.layout.matrices_end(), n, step);
    return norm;
  }

  std::vector<float> gradients() const override {
    std::vector<float> out = gradients_[0];
    for (size_t t = 1; t < gradients_.size(); ++t)
      for (size_t i = 0; i < out.size(); ++i) out[i] += gradients_[t][i];
    return out;
  }
  EngineState state() const override {
    EngineState out = state_;
    out.weights = model_.weights;
    return out;
  }
  void restore(const EngineState& state) override {
    state_ = {{}, state.first, state.second, state.steps};
    model_.weights = state.weights;
    std::ranges::transform(model_.weights, model_.rounded.begin(), to_bf16);
    for (auto& g : gradients_) std::ranges::fill(g, 0.0f);
  }
  std::string describe() const override {
    return fmt::format("CPU, BF16 products by oneDNN, {} threads", gradients_.size());
  }

 private:
  // A window belongs to the thread of its number, so the sums' order does not vary between runs.
  template <typename Body>
  void for_each_window(const Batch& batch, const Body& body) {
    auto& workers = workers_[batch.window];
    workers.resize(gradients_.size());
    const auto threads = static_cast<int64_t>(gradients_.size());
    parallel_for(threads, [&](int64_t thread) {
      // A thread makes its own memory, which lies near its processor then.
      auto& worker = workers[static_cast<size_t>(thread)];
      if (!worker) worker = std::make_unique<CpuWorker>(model_, batch.window);
      for (int64_t i = thread; i < batch.windows(); i += threads)
        body(*worker, static_cast<int>(thread), i);
    });
  }

  void sum_threads(int64_t first, int64_t count) {
    for (size_t t = 1; t < gradients_.size(); ++t) {
      add_to(gradients_[t].data() + first, count, gradients_[0].data() + first);
      std::fill_n(gradients_[t].data() + first, count, 0.0f);
    }
  }

  void update(int64_t begin, int64_t end, const AdamWStep& step) {
    parallel_for((end - begin + piece - 1) / piece, [&](int64_t p) {
      const int64_t first = begin + p * piece, count = std::min(piece, end - first);
      adamw(model_.weights.data() + first, gradients_[0].data() + first,
            state_.first.data() + first, state_.second.data() + first,
            model_.rounded.data() + first, count, step);
      std::fill_n(gradients_[0].data() + first, count, 0.0f);
    });
  }

  void update_by_muon(const AdamWStep& step) {
    const std::vector<NamedSlice> matrices = model_.layout.layer_matrices();
    parallel_for(static_cast<int64_t>(matrices.size()), [&](int64_t i) {
      const NamedSlice& s = matrices[static_cast<size_t>(i)];
      float *g = gradients_[0].data() + s.offset, *m = state_.first.data() + s.offset,
            *w = model_.weights.data() + s.offset;
      for (int64_t j = 0; j < s.count(); ++j) {
        m[j] = muon_momentum * m[j] + step.clip * g[j];
        g[j] = muon_momentum * m[j] + step.clip * g[j];
      }
      thread_local Muon muon;
      const float* direction = muon.orthogonalise(g, s.rows, s.columns);
      const auto rate = static_cast<float>(
          step.rate * muon_scale * std::sqrt(static_cast<double>(std::max(s.rows, s.columns))));
      const float keep = 1 - step.rate * step.decay;
      for (int64_t j = 0; j < s.count(); ++j) w[j] = w[j] * keep - rate * direction[j];
      round_row(w, s.count(), model_.rounded.data() + s.offset);
      std::fill_n(g, s.count(), 0.0f);
    });
  }

  CpuModel model_;
  EngineState state_;                                               // its weights lie in model_
  std::vector<std::vector<float>> gradients_;                       // of each thread
  std::map<int, std::vector<std::unique_ptr<CpuWorker>>> workers_;  // by window length
};

}  // namespace

bool cpu_engine_runs() {
  return has_avx512(current_isa()) && kernels::dnnl_multiplies(kernels::ElementType::bf16);
}

std::unique_ptr<Engine> make_cpu_engine(const LlamaConfig& config, std::vector<float> weights) {
  if (!cpu_engine_runs())
    fail("this processor has no BF16 products; train in F32 with --precision f32");
  return std::make_unique<CpuEngine>(config, std::move(weights));
}

}  // namespace sol::pretrain
