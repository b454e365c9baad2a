#include "training/torch_network.h"

// clang wants this type complete before ATen.h uses it in templates.
// clang-format off
#include <ATen/core/ivalue.h>
#include <ATen/ATen.h>
// clang-format on
#include <c10/core/GradMode.h>

#include <algorithm>
#include <cstring>
#include <map>

#include "base/fail.h"
#include "engine_torch/torch_threads.h"

namespace sol {
namespace {

using at::Tensor;

constexpr double layer_norm_eps = 1e-5;

// The observations of N schedules of T steps as tensors.
struct Batch {
  Tensor hidden, embedding;  // [N, T, d]
  Tensor scalars;            // [N, T, scalar_count]: the features, and the surprisal if shown
  Tensor previous, actions;  // [N, T], int64; the start symbol has the index A
};

Batch make_batch(std::span<const Schedule* const> schedules, const PolicyNetworkShape& shape) {
  if (schedules.empty()) fail("policy network: an empty batch");
  const int64_t n = static_cast<int64_t>(schedules.size());
  const int64_t steps = schedules[0]->steps();
  const int64_t d = shape.hidden_size;
  if (steps < 1 || steps > shape.max_length) {
    fail("policy network: schedules of {} steps, but its positions end at {}", steps,
         shape.max_length);
  }
  Batch batch{at::empty({n, steps, d}, at::kFloat), at::empty({n, steps, d}, at::kFloat),
              at::empty({n, steps, scalar_count(shape)}, at::kFloat),
              at::empty({n, steps}, at::kLong), at::empty({n, steps}, at::kLong)};
  const size_t row = static_cast<size_t>(steps * d);
  float* scalars = batch.scalars.data_ptr<float>();
  for (int64_t i = 0; i < n; ++i) {
    const Schedule& s = *schedules[static_cast<size_t>(i)];
    if (s.steps() != steps || s.hidden.size() != row || s.embedding.size() != row ||
        s.features.size() != static_cast<size_t>(steps) ||
        s.previous_actions.size() != static_cast<size_t>(steps) ||
        (shape.surprisal && s.surprisal.size() != static_cast<size_t>(steps))) {
      fail("policy network: schedule {} of the batch is not {} steps of width {}", i, steps, d);
    }
    std::memcpy(batch.hidden.data_ptr<float>() + i * steps * d, s.hidden.data(),
                row * sizeof(float));
    std::memcpy(batch.embedding.data_ptr<float>() + i * steps * d, s.embedding.data(),
                row * sizeof(float));
    for (int64_t t = 0; t < steps; ++t) {
      const size_t u = static_cast<size_t>(t);
      scalars = std::copy(s.features[u].begin(), s.features[u].end(), scalars);
      if (shape.surprisal) *scalars++ = s.surprisal[u] / surprisal_unit;
      const int previous = s.previous_actions[u], action = s.actions[u];
      if (previous < -1 || previous >= shape.actions || action < 0 || action >= shape.actions) {
        fail("policy network: action {} after {} at step {}, but there are {} actions", action,
             previous, t + 1, shape.actions);
      }
      batch.previous.data_ptr<int64_t>()[i * steps + t] = previous < 0 ? shape.actions : previous;
      batch.actions.data_ptr<int64_t>()[i * steps + t] = action;
    }
  }
  return batch;
}

std::vector<float> to_vector(const Tensor& tensor) {
  const Tensor t = tensor.contiguous();
  const float* data = t.data_ptr<float>();
  return {data, data + t.numel()};
}

// What stands for a logit without probability: not minus infinity, whose product with 0 is no
// number.
constexpr float no_logit = -1e30f;

// What a guard adds to logits, [N, T, A]; on a step that does not count, nothing.
Tensor guard_biases(std::span<const Schedule* const> schedules, const BudgetGuard& guard,
                    int actions) {
  const auto count = static_cast<int64_t>(schedules.size());
  const int steps = schedules[0]->steps();
  Tensor biases = at::zeros({count, steps, actions}, at::kFloat);
  float* next = biases.data_ptr<float>();
  for (const Schedule* schedule : schedules) {
    if (schedule->effective.size() != static_cast<size_t>(steps))
      fail("policy network: enforced budgets need to know which steps count");
    int counted = 0;
    for (int t = 0; t < steps; ++t, next += actions) {
      const auto at = static_cast<size_t>(t);
      if (!schedule->effective[at]) continue;
      const std::span own(next, static_cast<size_t>(actions));
      guard.biases(schedule->features[at], counted++, steps - t, own);
      for (float& bias : own) bias = std::max(bias, no_logit);
    }
  }
  return biases;
}

}  // namespace

struct TorchNetwork::Impl {
  PolicyNetworkShape shape;
  bool deterministic = false;
  std::shared_ptr<const BudgetGuard> guard;
  std::map<std::string, Tensor> parameters;
  std::vector<std::string> names;

  const Tensor& p(const std::string& name) const { return parameters.at(name); }

  Tensor linear(const Tensor& x, const std::string& name) const {
    return at::linear(x, p(name + ".weight"), p(name + ".bias"));
  }
  Tensor layer_norm(const Tensor& x, const std::string& name) const {
    return at::layer_norm(x, {x.size(-1)}, p(name + ".weight"), p(name + ".bias"), layer_norm_eps);
  }

  Tensor attention(const Tensor& x, const std::string& name) const {
    const int64_t n = x.size(0), steps = x.size(1), width = x.size(2);
    const int64_t heads = shape.heads, dim = width / heads;
    const auto project = [&](const char* which) {
      return at::linear(x, p(name + which)).view({n, steps, heads, dim}).transpose(1, 2);
    };
    const Tensor q = project(".q_proj.weight"), k = project(".k_proj.weight"),
                 v = project(".v_proj.weight");
    const Tensor later = at::ones({steps, steps}, at::kBool).triu(1);
    const Tensor scores = (at::matmul(q, k.transpose(-2, -1)) / std::sqrt(static_cast<double>(dim)))
                              .masked_fill(later, -std::numeric_limits<double>::infinity());
    const Tensor mixed =
        at::matmul(at::softmax(scores, -1), v).transpose(1, 2).reshape({n, steps, width});
    return at::linear(mixed, p(name + ".o_proj.weight"));
  }

  // Logits [N, T, A] before any temperature (docs/arithmetic.md, "Policy network").
  Tensor forward(const Batch& batch) const {
    const int64_t steps = batch.hidden.size(1);
    const Tensor scalars =
        layer_norm(at::gelu(linear(batch.scalars, "scalar_proj.0")), "scalar_proj.2");
    const Tensor previous = at::embedding(p("action_emb.weight"), batch.previous);
    Tensor x = linear(at::cat({batch.hidden, batch.embedding, scalars, previous}, -1), "obs_proj");
    x = x + p("pos_emb.weight").slice(0, 0, steps);
    for (int layer = 0; layer < shape.layers; ++layer) {
      const std::string block = "blocks." + std::to_string(layer);
      x = x + attention(layer_norm(x, block + ".ln1"), block + ".attn");
      x = x +
          linear(at::gelu(linear(layer_norm(x, block + ".ln2"), block + ".ff.0")), block + ".ff.2");
    }
    const Tensor budget = batch.scalars.slice(-1, 2, 5);
    return linear(layer_norm(x, "ln_f"), "pi") +
           linear(at::gelu(linear(budget, "budget_head.0")), "budget_head.2");
  }

  // Log-probabilities [N, T, A] at a temperature.
  Tensor log_probabilities(std::span<const Schedule* const> schedules, const Batch& batch,
                           double temperature) const {
    Tensor logits = forward(batch);
    if (guard) logits = logits + guard_biases(schedules, *guard, shape.actions);
    return at::log_softmax(logits / temperature, -1);
  }

  Tensor chosen(const Tensor& log_probs, const Batch& batch) const {
    return log_probs.gather(-1, batch.actions.unsqueeze(-1)).squeeze(-1);
  }
};

TorchNetwork::TorchNetwork(const PolicyNetworkShape& shape, const Parameters& parameters,
                           bool deterministic, std::shared_ptr<const BudgetGuard> guard)
    : shape_(shape), impl_(std::make_unique<Impl>()) {
  impl_->deterministic = deterministic;
  impl_->guard = std::move(guard);
  // LibTorch starts with one thread and, unless it has been told a number, at its first large
  // operation would leave the whole program with one.
  const TorchThreads threads(deterministic);
  impl_->shape = shape;
  check_parameters(shape, parameters);
  for (const auto& [name, parameter] : parameters) {
    Tensor tensor = at::empty(parameter.shape, at::kFloat);
    std::memcpy(tensor.data_ptr<float>(), parameter.values.data(),
                parameter.values.size() * sizeof(float));
    tensor.set_requires_grad(true);
    // Present from the start, the unused value head's included: it decays as in the reference.
    tensor.mutable_grad() = at::zeros(parameter.shape, at::kFloat);
    impl_->parameters.emplace(name, tensor);
    impl_->names.push_back(name);
  }
}

TorchNetwork::~TorchNetwork() = default;
TorchNetwork::TorchNetwork(TorchNetwork&&) noexcept = default;
TorchNetwork& TorchNetwork::operator=(TorchNetwork&&) noexcept = default;

const std::vector<std::string>& TorchNetwork::names() const {
  return impl_->names;
}

std::span<float> TorchNetwork::values(const std::string& name) {
  const Tensor& t = impl_->p(name);
  return {t.data_ptr<float>(), static_cast<size_t>(t.numel())};
}

std::span<float> TorchNetwork::gradient(const std::string& name) {
  const Tensor& t = impl_->p(name).grad();
  if (!t.is_contiguous()) impl_->p(name).mutable_grad() = t.contiguous();
  const Tensor& g = impl_->p(name).grad();
  return {g.data_ptr<float>(), static_cast<size_t>(g.numel())};
}

void TorchNetwork::zero_gradients() {
  const c10::NoGradGuard no_gradients;
  for (auto& entry : impl_->parameters) entry.second.mutable_grad().zero_();
}

Parameters TorchNetwork::parameters() const {
  Parameters out;
  for (const auto& [name, tensor] : impl_->parameters) {
    out[name] = {tensor.sizes().vec(), to_vector(tensor.detach())};
  }
  return out;
}

std::vector<float> TorchNetwork::logits(std::span<const Schedule* const> schedules) const {
  const TorchThreads threads(impl_->deterministic);
  const c10::NoGradGuard no_gradients;
  return to_vector(impl_->forward(make_batch(schedules, shape_)));
}

std::vector<float> TorchNetwork::log_probs(std::span<const Schedule* const> schedules,
                                           double temperature) const {
  const TorchThreads threads(impl_->deterministic);
  const c10::NoGradGuard no_gradients;
  const Batch batch = make_batch(schedules, shape_);
  return to_vector(impl_->chosen(impl_->log_probabilities(schedules, batch, temperature), batch));
}

LossTerms TorchNetwork::accumulate(std::span<const Schedule* const> schedules,
                                   const LossOptions& options, double divisor) {
  const TorchThreads threads(impl_->deterministic);
  const Batch batch = make_batch(schedules, shape_);
  const int64_t n = batch.actions.size(0), steps = batch.actions.size(1);
  const Tensor old = at::empty({n, steps}, at::kFloat),
               advantages = at::empty({n, steps}, at::kFloat);
  const Tensor effective = at::empty({n, steps}, at::kFloat);
  const Tensor imitation = at::empty({n, 1}, at::kFloat);
  LossTerms terms;
  for (int64_t i = 0; i < n; ++i) {
    const Schedule& s = *schedules[static_cast<size_t>(i)];
    const size_t count = static_cast<size_t>(steps);
    if (s.old_log_probs.size() != count || s.advantages.size() != count ||
        s.effective.size() != count) {
      fail("policy loss: schedule {} lacks old log-probabilities, advantages or flags", i);
    }
    imitation.data_ptr<float>()[i] = s.imitation;
    for (int64_t t = 0; t < steps; ++t) {
      const size_t u = static_cast<size_t>(t);
      old.data_ptr<float>()[i * steps + t] = s.old_log_probs[u];
      advantages.data_ptr<float>()[i * steps + t] = s.advantages[u];
      effective.data_ptr<float>()[i * steps + t] = s.effective[u] ? 1.0f : 0.0f;
      terms.steps += s.effective[u] ? 1 : 0;
    }
  }
  if (terms.steps == 0) return terms;
  const double count = static_cast<double>(terms.steps);
  const auto mean = [&](const Tensor& x) { return (x * effective).sum() / count; };

  const Tensor log_probs = impl_->log_probabilities(schedules, batch, options.temperature);
  const Tensor entropy = mean(-(log_probs.exp() * log_probs).sum(-1));
  // A step that is not effective has no ratio: its executed action was not chosen.
  const Tensor chosen = impl_->chosen(log_probs, batch);
  const Tensor ratio = ((chosen - old) * effective).exp();
  const Tensor clipped = ratio.clamp(1.0 - options.clip, 1.0 + options.clip);
  const Tensor policy_loss = -mean(at::minimum(ratio * advantages, clipped * advantages));
  Tensor loss = policy_loss - options.entropy * entropy;
  if (options.distil > 0) {
    const Tensor distil_loss = -mean(imitation * chosen);
    loss = loss + options.distil * distil_loss;
    terms.distil_loss = distil_loss.item<double>();
  }
  (loss / divisor).backward();

  terms.loss = loss.item<double>();
  terms.policy_loss = policy_loss.item<double>();
  terms.entropy = entropy.item<double>();
  terms.clip_fraction = mean(((ratio - 1.0).abs() > options.clip).to(at::kFloat)).item<double>();
  return terms;
}

}  // namespace sol
