// One step of the policy network for a batch of episodes (docs/arithmetic.md, "Policy network").
#include "policy/network.h"

#include <algorithm>
#include <cmath>

#include "base/fail.h"
#include "base/threads.h"
#include "kernels/kernels.h"
#include "policy/network_weights.h"

namespace sol {
namespace {

constexpr float norm_epsilon = 1e-5f;

// Rows of floats, all of one width.
struct Rows {
  Rows(size_t count, int row_width)
      : width(row_width), values(count * static_cast<size_t>(row_width)) {}
  float* row(int64_t r) { return values.data() + r * width; }
  int width;
  std::vector<float> values;
};

// out = in · W for all rows; the caller adds the bias with whatever it does next to a row.
void product(Rows& in, const LinearView& linear, Rows& out, kernels::MatmulMode mode) {
  kernels::matmul(in.values.data(), in.width, static_cast<int>(in.values.size()) / in.width,
                  linear.weight, out.values.data(), out.width, mode);
}

void add(float* x, const float* y, int n) {
  kernels::kernels().add(x, y, n);
}

void layer_norm(const float* x, const NormView& norm, int n, float* out) {
  kernels::kernels().layer_norm(x, norm.weight, norm.bias, norm_epsilon, n, out);
}

// Attention of one step over its episode's keys and values, this step's included.
void attend_over_steps(const float* query, const PolicyNetwork::State& state, size_t layer,
                       int heads, int d_model, float* out) {
  const int dim = d_model / heads;
  const int length = state.length + 1;
  const float scale = 1.0f / std::sqrt(static_cast<float>(dim));
  std::vector<float> share(static_cast<size_t>(length));
  std::fill(out, out + d_model, 0.0f);
  for (int head = 0; head < heads; ++head) {
    const float* q = query + head * dim;
    float largest = -INFINITY;
    for (int t = 0; t < length; ++t) {
      const float* k = state.keys[layer].data() + int64_t{t} * d_model + head * dim;
      float score = 0.0f;
      for (int i = 0; i < dim; ++i) score += q[i] * k[i];
      share[static_cast<size_t>(t)] = score * scale;
      largest = std::max(largest, score * scale);
    }
    float sum = 0.0f;
    for (float& s : share) sum += s = std::exp(s - largest);
    for (int t = 0; t < length; ++t) {
      const float* v = state.values[layer].data() + int64_t{t} * d_model + head * dim;
      const float weight = share[static_cast<size_t>(t)] / sum;
      for (int i = 0; i < dim; ++i) out[head * dim + i] += weight * v[i];
    }
  }
}

}  // namespace

// The forward pass, one method per part; run() is the whole of it.
class PolicyNetwork::Pass {
 public:
  Pass(const PolicyNetworkShape& shape, const Weights& weights, std::span<const Input> inputs,
       kernels::MatmulMode mode)
      : shape_(shape),
        w_(weights),
        inputs_(inputs),
        mode_(mode),
        d_(shape.d_model),
        x_(inputs.size(), d_),
        normed_(inputs.size(), d_),
        delta_(inputs.size(), d_) {}

  void run() {
    observe();
    for (size_t layer = 0; layer < w_.blocks.size(); ++layer) {
      attend(w_.blocks[layer], layer);
      feed_forward(w_.blocks[layer]);
    }
    head();
  }

 private:
  // x = W concat(h, e(x), features, previous action) + b + position of the step.
  void observe() {
    Rows features(count(), scalar_count(shape_)), scalars(count(), scalar_width);
    each([&](int64_t r, const Input& input) {
      float* next = std::copy(input.features.begin(), input.features.end(), features.row(r));
      if (shape_.surprisal) *next = input.surprisal / surprisal_unit;
    });
    product(features, w_.scalar, scalars, mode_);

    Rows observation(count(), observation_width(shape_));
    each([&](int64_t r, const Input& input) {
      float* scalar = scalars.row(r);
      add(scalar, w_.scalar.bias, scalar_width);
      k_.gelu(scalar, scalar_width);
      float* out = std::copy_n(input.hidden, shape_.hidden_size, observation.row(r));
      out = std::copy_n(input.embedding, shape_.hidden_size, out);
      layer_norm(scalar, w_.scalar_norm, scalar_width, out);
      const int previous = input.previous_action < 0 ? shape_.actions : input.previous_action;
      std::copy_n(w_.action_embedding + int64_t{previous} * shape_.action_dim, shape_.action_dim,
                  out + scalar_width);
    });
    product(observation, w_.observation, x_, mode_);
    each([&](int64_t r, const Input& input) {
      add(x_.row(r), w_.observation.bias, d_);
      add(x_.row(r), w_.position + int64_t{input.state->length} * d_, d_);
    });
  }

  // x += O attention(Q, K, V of LayerNorm(x)) over each episode's own steps.
  void attend(const Weights::Block& block, size_t layer) {
    Rows qkv(count(), 3 * d_), attended(count(), d_);
    each([&](int64_t r, const Input&) { layer_norm(x_.row(r), block.norm1, d_, normed_.row(r)); });
    product(normed_, block.qkv, qkv, mode_);
    each([&](int64_t r, const Input& input) {
      const float* q = qkv.row(r);
      State& state = *input.state;
      state.keys.resize(w_.blocks.size());
      state.values.resize(w_.blocks.size());
      state.keys[layer].insert(state.keys[layer].end(), q + d_, q + 2 * d_);
      state.values[layer].insert(state.values[layer].end(), q + 2 * d_, q + 3 * d_);
      attend_over_steps(q, state, layer, shape_.heads, d_, attended.row(r));
    });
    product(attended, block.output, delta_, mode_);
    each([&](int64_t r, const Input&) { add(x_.row(r), delta_.row(r), d_); });
  }

  // x += down(GELU(up(LayerNorm(x)))).
  void feed_forward(const Weights::Block& block) {
    Rows wide(count(), mlp_width(shape_));
    each([&](int64_t r, const Input&) { layer_norm(x_.row(r), block.norm2, d_, normed_.row(r)); });
    product(normed_, block.up, wide, mode_);
    each([&](int64_t r, const Input&) {
      add(wide.row(r), block.up.bias, wide.width);
      k_.gelu(wide.row(r), wide.width);
    });
    product(wide, block.down, delta_, mode_);
    each([&](int64_t r, const Input&) {
      add(x_.row(r), delta_.row(r), d_);
      add(x_.row(r), block.down.bias, d_);
    });
  }

  // Action logits of LayerNorm(x) plus the budget head's (3 → 32, GELU → actions), in one product.
  void head() {
    Rows targets(count(), 3), budget(count(), budget_width), last(count(), d_ + budget_width);
    each([&](int64_t r, const Input& input) {
      std::copy_n(input.features.begin() + 2, 3, targets.row(r));
    });
    product(targets, w_.budget, budget, mode_);
    each([&](int64_t r, const Input&) {
      layer_norm(x_.row(r), w_.final_norm, d_, last.row(r));
      add(budget.row(r), w_.budget.bias, budget_width);
      k_.gelu(budget.row(r), budget_width);
      std::copy_n(budget.row(r), budget_width, last.row(r) + d_);
    });
    Rows logits(count(), shape_.actions);
    product(last, w_.head, logits, mode_);
    each([&](int64_t r, const Input& input) {
      add(logits.row(r), w_.head.bias, shape_.actions);
      std::copy_n(logits.row(r), shape_.actions, input.logits);
      ++input.state->length;
    });
  }

  size_t count() const { return inputs_.size(); }

  template <typename Body>
  void each(const Body& body) {
    const auto rows = static_cast<int64_t>(count());
    const auto one = [&](int64_t r) { body(r, inputs_[static_cast<size_t>(r)]); };
    // Waking threads costs more than a few short rows do.
    if (rows * d_ >= 1 << 13) return parallel_for(rows, one);
    for (int64_t r = 0; r < rows; ++r) one(r);
  }

  const PolicyNetworkShape& shape_;
  const Weights& w_;
  std::span<const Input> inputs_;
  const kernels::MatmulMode mode_;
  const kernels::Kernels& k_ = kernels::kernels();
  const int d_;
  Rows x_, normed_, delta_;
};

PolicyNetwork::PolicyNetwork(const PolicyNetworkShape& shape, Parameters parameters)
    : shape_(shape), parameters_(std::move(parameters)) {
  check_parameters(shape_, parameters_);
  weights_ = std::make_unique<const Weights>(shape_, parameters_);
}

PolicyNetwork::~PolicyNetwork() = default;

void PolicyNetwork::step(std::span<const Input> inputs, kernels::MatmulMode mode) const {
  for (const Input& input : inputs) {
    if (input.state->length >= shape_.max_length)
      fail("policy network: an episode may have at most {} steps (its learned positions)",
           shape_.max_length);
    if (input.previous_action < -1 || input.previous_action >= shape_.actions)
      fail("policy network: previous action {} is outside 0..{}", input.previous_action,
           shape_.actions - 1);
  }
  if (!inputs.empty()) Pass(shape_, *weights_, inputs, mode).run();
}

}  // namespace sol
