#include "engine_torch/torch_forward.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "engine_torch/torch_device.h"
#include "kernels/select.h"

namespace sol {

using at::Tensor;

namespace {

// Residual stream, norms and what follows a product are float32; a BF16 matrix is multiplied by
// BF16 inputs, and the library rounds its results to BF16 as well.
Tensor product(const Tensor& x, const Tensor& matrix) {
  return at::linear(x.to(matrix.scalar_type()), matrix).to(at::kFloat);
}

}  // namespace

TorchForward::TorchForward(const LlamaConfig& config, const TorchWeights& weights,
                           const at::Device& device)
    : config_(config),
      weights_(weights),
      device_(device),
      inverse_frequencies_(rotary_inverse_frequencies(config)) {}

void TorchForward::run(TorchPass& pass) {
  Work work = prepare(pass);
  Tensor x = weights_.embedding.index_select(0, on_device(pass.tokens, {pass.rows()}, device_))
                 .to(at::kFloat);
  for (int layer = 0; layer < config_.num_layers; ++layer) x = run_layer(layer, work, std::move(x));
  write_outputs(pass, x);
  if (work.decoded) write_costs(pass, *work.decoded);
}

Tensor TorchForward::run_layer(int layer, Work& work, Tensor x) const {
  const TorchLayer& weights = weights_.layers[static_cast<size_t>(layer)];
  const Tensor input = normalise(x, weights.input_norm);
  const Tensor q = rotate(product(input, weights.q), config_.num_heads, work);
  const Tensor k = rotate(product(input, weights.k), config_.num_kv_heads, work);
  const Tensor v = product(input, weights.v).view({-1, config_.num_kv_heads, config_.head_dim});
  work.pool->write(layer, work.write.slots, k, v, work.write.pages, work.write.page_slots);
  x = x + product(attend(layer, work, q.flatten(1)), weights.o);
  return x + work.actions.quantise(run_mlp(weights, work, normalise(x, weights.post_norm)));
}

TorchForward::Work TorchForward::prepare(const TorchPass& pass) {
  int longest = 0;
  std::vector<int64_t> positions;
  std::vector<Action> actions;
  for (const TorchSegment& segment : pass.segments) {
    for (int r = 0; r < segment.rows; ++r) positions.push_back(segment.position + r);
    longest = std::max(longest, segment.position + segment.rows);
    actions.push_back(segment.action);
  }
  grow_rotary_table(longest);
  const Tensor rows = on_device(positions, {pass.rows()}, device_);
  Work work{.pool = pass.segments[0].sequence->pool().get(),
            .write = WritePlan(pass.segments, device_),
            .cos = cos_.index_select(0, rows).unsqueeze(1),
            .sin = sin_.index_select(0, rows).unsqueeze(1),
            .actions = {},
            .dense = {},
            .decoded = {}};
  if (pass.decode) {
    const bool count = std::ranges::any_of(pass.costs, [](const StepCost* cost) { return cost; });
    work.actions = RowActions(actions, config_.hidden_size, device_);
    work.decoded.emplace(config_, pass.segments, count, device_);
  } else {
    work.dense.emplace(config_, pass.segments, device_);
  }
  return work;
}

Tensor TorchForward::normalise(const Tensor& x, const Tensor& weight) const {
  const Tensor mean_square = x.square().mean(-1, /*keepdim=*/true);
  return x * at::rsqrt(mean_square + config_.rms_norm_eps) * weight;
}

// Hugging Face's half-split layout; [rows, heads * dim] -> [rows, heads, dim].
Tensor TorchForward::rotate(const Tensor& x, int heads, const Work& work) const {
  const std::vector<Tensor> halves = x.view({-1, heads, config_.head_dim}).chunk(2, -1);
  const Tensor &low = halves[0], &high = halves[1];
  return at::cat({low * work.cos - high * work.sin, high * work.cos + low * work.sin}, -1);
}

Tensor TorchForward::attend(int layer, Work& work, const Tensor& q) const {
  const CachePool::Layer& cache = work.pool->layers()[static_cast<size_t>(layer)];
  return work.decoded ? work.decoded->run(cache, q) : work.dense->run(cache, q);
}

Tensor TorchForward::run_mlp(const TorchLayer& layer, const Work& work, const Tensor& x) const {
  const Tensor kept = work.actions.keep_channels(x);
  return product(at::silu(product(kept, layer.gate)) * product(kept, layer.up), layer.down);
}

// A row of a large vocabulary needs float32: BF16 would round a logit of 20 to a multiple of 1/8.
// A BF16 head is widened piece by piece.
Tensor TorchForward::logits(const Tensor& hidden) const {
  if (weights_.head.scalar_type() == at::kFloat) return at::linear(hidden, weights_.head);
  constexpr int64_t piece = 8192;
  std::vector<Tensor> parts;
  for (int64_t first = 0; first < config_.vocab_size; first += piece) {
    const int64_t count = std::min<int64_t>(piece, config_.vocab_size - first);
    parts.push_back(at::linear(hidden, weights_.head.narrow(0, first, count).to(at::kFloat)));
  }
  return parts.size() == 1 ? parts[0] : at::cat(parts, -1);
}

void TorchForward::write_outputs(const TorchPass& pass, const Tensor& x) const {
  constexpr int64_t most_logits = 32 << 20;  // that exist at a time, in floats
  const int64_t d = config_.hidden_size, vocabulary = config_.vocab_size;
  // Those that want the head's results first.
  std::vector<const TorchWantedRow*> wanted;
  for (const TorchWantedRow& one : pass.wanted) wanted.push_back(&one);
  const auto end_of_head = std::stable_partition(
      wanted.begin(), wanted.end(), [](const auto* one) { return one->out.wants_head(); });
  const int64_t with_head = end_of_head - wanted.begin();
  if (wanted.empty()) return;
  std::vector<int64_t> rows, targets;
  for (const TorchWantedRow* one : wanted) {
    rows.push_back(one->row);
    targets.push_back(std::max(one->out.target, 0));
  }
  const int64_t count = static_cast<int64_t>(rows.size());
  const Tensor hidden =
      normalise(x.index_select(0, on_device(rows, {count}, device_)), weights_.final_norm);
  if (std::ranges::any_of(wanted, [](const auto* one) { return one->out.hidden; })) {
    const Tensor host = hidden.to(at::kCPU).contiguous();
    for (int64_t i = 0; i < count; ++i)
      if (float* out = wanted[static_cast<size_t>(i)]->out.hidden)
        std::memcpy(out, host.data_ptr<float>() + i * d, static_cast<size_t>(d) * sizeof(float));
  }
  const Tensor target = on_device(targets, {count, 1}, device_);
  const int64_t step = std::clamp<int64_t>(most_logits / vocabulary, 1, 1024);
  for (int64_t first = 0; first < with_head; first += step) {
    const int64_t part = std::min(step, with_head - first);
    const std::span<const TorchWantedRow*> here(&wanted[static_cast<size_t>(first)],
                                                static_cast<size_t>(part));
    const Tensor scores = logits(hidden.narrow(0, first, part));
    if (std::ranges::any_of(here, [](const auto* one) { return one->out.logits; })) {
      const Tensor host = scores.to(at::kCPU).contiguous();
      for (int64_t i = 0; i < part; ++i)
        if (float* out = here[static_cast<size_t>(i)]->out.logits)
          std::memcpy(out, host.data_ptr<float>() + i * vocabulary,
                      static_cast<size_t>(vocabulary) * sizeof(float));
    }
    const auto wants_sums = [](const auto* one) { return one->out.log_prob || one->out.entropy; };
    if (std::ranges::none_of(here, wants_sums)) continue;
    const Tensor log_probs = at::log_softmax(scores, -1);
    const auto on_host = [](const Tensor& column) { return column.to(at::kCPU).contiguous(); };
    const Tensor chosen = on_host(log_probs.gather(-1, target.narrow(0, first, part)));
    // As large as the logits again, twice: only for those who ask.
    Tensor entropy;
    if (std::ranges::any_of(here, [](const auto* one) { return one->out.entropy; }))
      entropy = on_host((log_probs.exp() * log_probs).sum(-1).neg());
    for (int64_t i = 0; i < part; ++i) {
      const OutputRequest& out = here[static_cast<size_t>(i)]->out;
      if (out.log_prob) *out.log_prob = chosen.data_ptr<float>()[i];
      if (out.entropy) *out.entropy = entropy.data_ptr<float>()[i];
    }
  }
}

// As the CPU engine counts (engine/decode_attention.cpp, engine/cpu_model.cpp): what the step
// needed, whatever the library read.
void TorchForward::write_costs(const TorchPass& pass, const DecodeAttention& attention) const {
  if (std::ranges::none_of(pass.costs, [](const StepCost* cost) { return cost; })) return;
  const std::vector<int64_t> attended = attention.attended(), needed = attention.needed();
  std::vector<bool> head(pass.segments.size());
  for (const TorchWantedRow& one : pass.wanted)
    if (one.out.wants_head()) head[static_cast<size_t>(one.row)] = true;
  const uint64_t layers = static_cast<uint64_t>(config_.num_layers);
  for (size_t s = 0; s < pass.segments.size(); ++s) {
    if (!pass.costs[s]) continue;
    const TorchSequence& sequence = *pass.segments[s].sequence;
    const CacheLayout& layout = sequence.pool()->layout();
    const int n = sequence.length();
    const uint64_t vector_bytes =
        static_cast<uint64_t>(kernels::size_of(layout.type)) * static_cast<uint64_t>(layout.dim);
    const uint64_t pages = static_cast<uint64_t>(kernels::page_count(n, layout.page_size)) *
                           static_cast<uint64_t>(config_.num_kv_heads) * layers;
    const uint64_t channels = static_cast<uint64_t>(
        kernels::keep_count(pass.segments[s].action.rho, config_.hidden_size));
    pass.costs[s]->attended = static_cast<double>(attended[s]) /
                              (static_cast<double>(n) * config_.num_heads * config_.num_layers);
    pass.costs[s]->bytes =
        2 * vector_bytes * static_cast<uint64_t>(needed[s]) +
        (attention.sparse(s) ? 2 * vector_bytes * pages : 0) +
        layers * (weights_.layer_fixed_bytes + channels * weights_.gate_up_row_bytes) +
        (head[s] ? weights_.head_bytes : 0);
  }
}

void TorchForward::grow_rotary_table(int positions) {
  const int have = cos_.defined() ? static_cast<int>(cos_.size(0)) : 0;
  if (positions <= have) return;
  const int rows = std::min(std::max(positions, 2 * have), config_.max_position_embeddings);
  std::vector<float> cos, sin;
  for (int p = 0; p < rows; ++p) {
    for (const float frequency : inverse_frequencies_) {
      const float angle = static_cast<float>(p) * frequency;  // float32, as Hugging Face
      cos.push_back(std::cos(angle));
      sin.push_back(std::sin(angle));
    }
  }
  const int64_t half = config_.head_dim / 2;
  // Both or none, should memory end.
  Tensor larger_cos = on_device(cos, {rows, half}, device_);
  sin_ = on_device(sin, {rows, half}, device_);
  cos_ = std::move(larger_cos);
}

}  // namespace sol
