// One step of the policy network for a batch of episodes (DESIGN, "Policy network").
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
void attend(const float* query, const PolicyNetwork::State& state, size_t layer, int heads,
            int d_model, float* out) {
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
  if (inputs.empty()) return;
  const Weights& w = *weights_;
  const kernels::Kernels& k = kernels::kernels();
  const int d = shape_.d_model, hidden = shape_.hidden_size;
  const size_t count = inputs.size();
  const auto rows = static_cast<int64_t>(count);
  const auto each = [&](const auto& body) {
    parallel_for(rows, [&](int64_t r) { body(r, inputs[static_cast<size_t>(r)]); });
  };

  // Features: Linear, GELU, LayerNorm.
  Rows features(count, feature_count), scalars(count, scalar_width);
  each([&](int64_t r, const Input& input) {
    std::copy(input.features.begin(), input.features.end(), features.row(r));
  });
  product(features, w.scalar, scalars, mode);

  // Observation: concat(h, e(x), features, previous action), projected, plus the step's position.
  Rows observation(count, observation_width(shape_)), x(count, d);
  each([&](int64_t r, const Input& input) {
    float* scalar = scalars.row(r);
    add(scalar, w.scalar.bias, scalar_width);
    k.gelu(scalar, scalar_width);
    float* out = std::copy(input.hidden, input.hidden + hidden, observation.row(r));
    out = std::copy(input.embedding, input.embedding + hidden, out);
    layer_norm(scalar, w.scalar_norm, scalar_width, out);
    const int previous = input.previous_action < 0 ? shape_.actions : input.previous_action;
    const float* action = w.action_embedding + int64_t{previous} * shape_.action_dim;
    std::copy(action, action + shape_.action_dim, out + scalar_width);
  });
  product(observation, w.observation, x, mode);

  Rows normed(count, d), qkv(count, 3 * d), attended(count, d), delta(count, d);
  Rows wide(count, mlp_width(shape_));
  const float* bias = w.observation.bias;  // of the product that x has last received
  each([&](int64_t r, const Input& input) {
    add(x.row(r), bias, d);
    add(x.row(r), w.position + int64_t{input.state->length} * d, d);
    input.state->keys.resize(w.blocks.size());
    input.state->values.resize(w.blocks.size());
  });

  for (size_t layer = 0; layer < w.blocks.size(); ++layer) {
    const Weights::Block& block = w.blocks[layer];
    each([&](int64_t r, const Input&) { layer_norm(x.row(r), block.norm1, d, normed.row(r)); });
    product(normed, block.qkv, qkv, mode);
    each([&](int64_t r, const Input& input) {
      const float* q = qkv.row(r);
      std::vector<float>& keys = input.state->keys[layer];
      std::vector<float>& values = input.state->values[layer];
      keys.insert(keys.end(), q + d, q + 2 * d);
      values.insert(values.end(), q + 2 * d, q + 3 * d);
      attend(q, *input.state, layer, shape_.heads, d, attended.row(r));
    });
    product(attended, block.output, delta, mode);
    each([&](int64_t r, const Input&) {
      add(x.row(r), delta.row(r), d);
      layer_norm(x.row(r), block.norm2, d, normed.row(r));
    });
    product(normed, block.up, wide, mode);
    each([&](int64_t r, const Input&) {
      add(wide.row(r), block.up.bias, wide.width);
      k.gelu(wide.row(r), wide.width);
    });
    product(wide, block.down, delta, mode);
    each([&](int64_t r, const Input&) {
      add(x.row(r), delta.row(r), d);
      add(x.row(r), block.down.bias, d);
    });
  }

  // Head: action logits plus the budget head's (3 → 32, GELU → actions), in one product.
  Rows targets(count, 3), budget(count, budget_width), last(count, d + budget_width);
  Rows logits(count, shape_.actions);
  each([&](int64_t r, const Input& input) {
    std::copy(input.features.begin() + 2, input.features.begin() + 5, targets.row(r));
  });
  product(targets, w.budget, budget, mode);
  each([&](int64_t r, const Input&) {
    layer_norm(x.row(r), w.final_norm, d, last.row(r));
    add(budget.row(r), w.budget.bias, budget_width);
    k.gelu(budget.row(r), budget_width);
    std::copy(budget.row(r), budget.row(r) + budget_width, last.row(r) + d);
  });
  product(last, w.head, logits, mode);
  each([&](int64_t r, const Input& input) {
    add(logits.row(r), w.head.bias, shape_.actions);
    std::copy(logits.row(r), logits.row(r) + shape_.actions, input.logits);
    ++input.state->length;
  });
}

}  // namespace sol
