#include "training/memory_plan.h"

#include <algorithm>

#include "base/fail.h"
#include "engine/kv_cache.h"

namespace sol {
namespace {

constexpr uint64_t f32 = sizeof(float);

uint64_t product(std::initializer_list<int64_t> factors) {
  uint64_t out = 1;
  for (const int64_t factor : factors) out *= static_cast<uint64_t>(factor);
  return out;
}

int64_t divide_up(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}

// Of the prefixes, shared by their schedules, and of what each schedule writes behind them.
uint64_t cache_bytes(const FrozenModel& model, const TrainingConfig& config, int64_t inputs) {
  const auto type =
      model.precision() == Precision::bf16 ? kernels::ElementType::bf16 : kernels::ElementType::f32;
  const CacheLayout layout(model.config(), config.sequence, type);
  const int64_t whole = config.context / layout.tokens;
  const int64_t end = divide_up(config.context + config.horizon, layout.tokens);
  const int64_t prefix = divide_up(config.context, layout.tokens);
  return product({inputs, prefix + config.schedules * (end - whole), layout.block_bytes});
}

// What attention through LibTorch makes of a decode step's scores: themselves, their softmax, and
// masks.
uint64_t torch_attention_bytes(const FrozenModel& model, const TrainingConfig& config,
                               int64_t inputs) {
  const int64_t keys = config.context + config.horizon;
  return product({inputs, config.schedules, model.config().num_heads, keys, 16});
}

// Of a dense pass: chunks of 512 rows.
uint64_t pass_bytes(const FrozenModel& model, const TrainingConfig& config, int64_t inputs) {
  const LlamaConfig& c = model.config();
  const int64_t rows =
      std::max<int64_t>(std::min<int64_t>(512, config.context), inputs * config.schedules);
  const int64_t attention = (c.num_heads + 2 * c.num_kv_heads) * c.head_dim;
  return product({rows, 6 * c.hidden_size + 3 * c.intermediate_size + 2 * attention}) * f32;
}

// Hidden states, embeddings and scalars of a collection's schedules.
uint64_t schedule_bytes(const FrozenModel& model, const TrainingConfig& config, int64_t inputs) {
  const int64_t batch_steps = int64_t{config.batch} * config.schedules * config.horizon;
  const int64_t batches = divide_up(config.target_steps, batch_steps);
  return product({batches, inputs, config.schedules, config.horizon,
                  2 * model.config().hidden_size + 24}) *
         f32;
}

uint64_t policy_parameters(const FrozenModel& model, const TrainingConfig& config) {
  uint64_t count = 0;
  for (const auto& [name, dimensions] :
       policy_parameter_shapes(config.network_shape(model.config().hidden_size))) {
    uint64_t values = 1;
    for (const int64_t d : dimensions) values *= static_cast<uint64_t>(d);
    count += values;
  }
  return count;
}

// What LibTorch keeps of a minibatch for the gradient: inputs, and per layer the normalised input,
// projections, attention and feed-forward, and several copies of the distribution.
uint64_t minibatch_bytes(const FrozenModel& model, const TrainingConfig& config) {
  const PolicyNetworkShape& p = config.policy;
  const int64_t steps = int64_t{config.minibatch_schedules()} * config.horizon;
  const int64_t layer = static_cast<int64_t>((10 + 3 * p.mlp_ratio) * p.d_model);
  const int64_t per_step = 3 * (2 * model.config().hidden_size + p.action_dim) +
                           p.layers * (layer + 3 * p.heads * config.horizon) +
                           8 * config.space.size();
  return product({steps, per_step}) * f32;
}

}  // namespace

uint64_t MemoryPlan::total() const {
  uint64_t bytes = 0;
  for (const MemoryItem& item : items) bytes += item.bytes;
  return bytes;
}

MemoryPlan plan_memory(const FrozenModel& model, const TrainingConfig& config, int processes) {
  const int64_t inputs = divide_up(config.batch, processes);
  const int64_t vocabulary = model.config().vocab_size;
  const uint64_t parameters = policy_parameters(model, config) * f32;
  MemoryPlan plan;
  const bool gpu = model.device().starts_with("cuda");
  std::vector<MemoryItem>& executing = gpu ? plan.gpu_items : plan.items;
  if (gpu) {
    const uint64_t element = model.precision() == Precision::bf16 ? 2 : 4;
    executing.push_back({"weights", model.parameter_count() * element});
  }
  executing.push_back({"cache: prefixes and schedules", cache_bytes(model, config, inputs)});
  executing.push_back({"dense pass", pass_bytes(model, config, inputs)});
  if (model.device() != "native")
    executing.push_back(
        {"attention of a decode step", torch_attention_bytes(model, config, inputs)});
  if (config.task_kl > 0)
    plan.items.push_back({"distributions of the KL reward",
                          product({inputs, config.horizon + config.schedules, vocabulary}) * f32});
  plan.items.push_back({"schedules of a collection", schedule_bytes(model, config, inputs)});
  // Once for training, once as the policy that acts, and a copy each while a checkpoint is written.
  plan.items.push_back({"policy: parameters", 3 * parameters});
  plan.items.push_back({"policy: gradients", (processes > 1 ? 5 : 2) * parameters});
  plan.items.push_back({"policy: AdamW's moments", 4 * parameters});
  plan.items.push_back({"policy: a minibatch's activations", minibatch_bytes(model, config)});
  return plan;
}

std::string advice_to_fit(const FrozenModel& model, const TrainingConfig& config, int processes,
                          uint64_t bytes) {
  const auto needed = [&](const TrainingConfig& c, int n) {
    return static_cast<uint64_t>(n) * plan_memory(model, c, n).total();
  };
  if (needed(config, processes) <= bytes) return "";
  std::vector<std::string> ways;
  const auto offer = [&](const TrainingConfig& c, int n, const std::string& text) {
    const uint64_t need = needed(c, n);
    if (need <= bytes) ways.push_back(fmt::format("{} ({})", text, format_bytes(need)));
    return need <= bytes;
  };
  if (processes > 1)
    for (int n = processes - 1; n >= 1; --n)
      if (offer(config, n, fmt::format("--processes {}", n))) break;
  for (TrainingConfig c = config; c.batch > processes && c.batch > 1;) {
    c.batch = std::max(processes, c.batch / 2);
    if (offer(c, processes, fmt::format("--set rollout.batch={}", c.batch))) break;
  }
  for (TrainingConfig c = config; c.context > 64;) {
    c.context /= 2;
    if (offer(c, processes, fmt::format("--set rollout.context={}", c.context))) break;
  }
  for (TrainingConfig c = config; c.target_steps > 1;) {
    c.target_steps /= 2;
    if (offer(c, processes, fmt::format("--set optimisation.target_steps={}", c.target_steps)))
      break;
  }
  for (TrainingConfig c = config; c.minibatch_schedules() > 1;) {
    c.minibatch /= 2;
    if (offer(c, processes, fmt::format("--set optimisation.minibatch={}", c.minibatch))) break;
  }
  if (ways.empty())
    return "no single setting makes it fit: lower rollout.batch and rollout.context together, load "
           "the weights as --weights int8 or keep the cache as --precision bf16";
  std::string text = "fits with ";
  for (size_t i = 0; i < ways.size(); ++i) text += (i > 0 ? ", or " : "") + ways[i];
  return text;
}

std::string format_bytes(uint64_t bytes) {
  const double mib = static_cast<double>(bytes) / (1 << 20);
  if (mib >= 1000) return fmt::format("{:.1f} GiB", mib / 1024);
  return mib >= 10 ? fmt::format("{:.0f} MiB", mib) : fmt::format("{:.1f} MiB", mib);
}

void require_memory(const FrozenModel& model, const TrainingConfig& config, int processes,
                    uint64_t available) {
  const MemoryPlan plan = plan_memory(model, config, processes);
  const uint64_t needed = static_cast<uint64_t>(processes) * plan.total();
  if (needed <= available) return;
  const auto largest =
      std::ranges::max_element(plan.items, {}, [](const MemoryItem& item) { return item.bytes; });
  fail(
      "training needs {} beside the model's weights (most of it for {}: {}), but {} are available; "
      "{}",
      format_bytes(needed), largest->what,
      format_bytes(static_cast<uint64_t>(processes) * largest->bytes), format_bytes(available),
      advice_to_fit(model, config, processes, available));
}

}  // namespace sol
