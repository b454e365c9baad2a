#include "training/memory_plan.h"

#include <algorithm>
#include <bit>

#include "base/fail.h"
#include "engine/kv_cache.h"
#include "model/safetensors.h"
#include "training/lanes.h"

namespace sol {
namespace {

constexpr uint64_t f32 = sizeof(float);
// What a process takes beyond all that is counted below: code, LibTorch's libraries, threads,
// allocators (measured: 197 MiB beyond the rest of the list on the embedded model, 170 on a 1B
// one).
constexpr uint64_t program_bytes = uint64_t{200} << 20;

uint64_t product(std::initializer_list<int64_t> factors) {
  uint64_t out = 1;
  for (const int64_t factor : factors) out *= static_cast<uint64_t>(factor);
  return out;
}

int64_t divide_up(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}

// Of the prefixes, shared by their schedules, and of what each schedule writes behind them.
uint64_t cache_bytes(const FrozenModel& model, const TrainingConfig& config, int64_t inputs,
                     Precision precision) {
  const auto type =
      precision == Precision::bf16 ? kernels::ElementType::bf16 : kernels::ElementType::f32;
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

// Of a LibTorch device's dense pass: scores of a piece and their softmax (torch_attention.cpp).
uint64_t torch_scores_bytes(const FrozenModel& model) {
  return product({model.device() == "cpu" ? 1 << 18 : 64 << 20, 2}) * f32;
}

// Of a LibTorch device's step: logits, their logarithms and a widened piece of the head
// (torch_forward.cpp).
uint64_t torch_logits_bytes(const FrozenModel& model, const TrainingConfig& config,
                            int64_t inputs) {
  const int64_t vocabulary = model.config().vocab_size;
  const int64_t most = std::clamp<int64_t>((32 << 20) / vocabulary, 1, 1024);
  const int64_t rows = std::min<int64_t>(most, inputs * config.schedules);
  return (product({rows, vocabulary, 2}) + product({8192, model.config().hidden_size})) * f32;
}

// Of a dense pass, in chunks of rows that several inputs fill together.
uint64_t pass_bytes(const FrozenModel& model, const TrainingConfig& config, int64_t inputs) {
  const LlamaConfig& c = model.config();
  const int64_t chunk = model.device() == native_device ? 512 : 1024;
  const int64_t rows =
      std::max(std::min(chunk, inputs * config.context), inputs * config.schedules);
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

// Vectors of all gradients that an update holds. Of several lanes (update.cpp): the network's, what
// was in it before, the sum so far at each level of halving and the lane at hand. Of several
// processes while they sum (gloo_group.cpp): the network's, what was in it before, the sum, what is
// sent, what is received, the pieces that come back and Gloo's own copy of these.
uint64_t gradient_vectors(const TrainingConfig& config, int processes, bool deterministic) {
  const int lanes =
      deterministic ? Lanes::share(config.batch, config.schedules, true, 0, processes).own : 1;
  const int of_lanes =
      lanes > 1 ? 3 + static_cast<int>(std::bit_width(static_cast<unsigned>(lanes - 1))) : 0;
  return static_cast<uint64_t>(std::max(processes > 1 ? 7 : 2, of_lanes));
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

MemoryPlan plan_memory(const FrozenModel& model, const TrainingConfig& config, int processes,
                       bool deterministic, Precision precision) {
  if (precision == Precision::automatic) precision = model.precision();
  const int64_t inputs = divide_up(config.batch, processes);
  const int64_t vocabulary = model.config().vocab_size;
  const uint64_t parameters = policy_parameters(model, config) * f32;
  MemoryPlan plan;
  const bool gpu = model.device().starts_with("cuda");
  std::vector<MemoryItem>& executing = gpu ? plan.gpu_items : plan.items;
  if (gpu) {
    const uint64_t element = precision == Precision::bf16 ? 2 : 4;
    executing.push_back({"weights", model.parameter_count() * element});
  }
  executing.push_back(
      {"cache: prefixes and schedules", cache_bytes(model, config, inputs, precision)});
  executing.push_back({"dense pass", pass_bytes(model, config, inputs)});
  if (model.device() != native_device) {
    executing.push_back({"attention of a dense pass", torch_scores_bytes(model)});
    executing.push_back(
        {"attention of a decode step", torch_attention_bytes(model, config, inputs)});
    executing.push_back({"logits", torch_logits_bytes(model, config, inputs)});
  }
  if (config.task_kl > 0)
    plan.items.push_back({"distributions of the KL reward",
                          product({inputs, config.horizon + config.schedules, vocabulary}) * f32});
  plan.items.push_back({"schedules of a collection", schedule_bytes(model, config, inputs)});
  // Once for training, twice as the policy that acts (PolicyNetwork copies its matrices), and a
  // copy while a checkpoint is written.
  plan.items.push_back({"policy: parameters", 4 * parameters});
  plan.items.push_back(
      {"policy: gradients", gradient_vectors(config, processes, deterministic) * parameters});
  plan.items.push_back({"policy: AdamW's moments", 4 * parameters});
  plan.items.push_back({"policy: a minibatch's activations", minibatch_bytes(model, config)});
  plan.items.push_back({"the program and its libraries", program_bytes});
  return plan;
}

int weight_copies(const FrozenModel& model, int processes) {
  return model.device() == native_device ? 1 : processes;
}

uint64_t memory_needed(const FrozenModel& model, const TrainingConfig& config,
                       const MachineMemory& machine) {
  const auto processes = static_cast<uint64_t>(machine.processes);
  return processes *
             plan_memory(model, config, machine.all_processes, machine.deterministic).total() +
         static_cast<uint64_t>(weight_copies(model, machine.processes)) * machine.weights;
}

std::string format_bytes(uint64_t bytes) {
  const double mib = static_cast<double>(bytes) / (1 << 20);
  if (mib >= 1000) return fmt::format("{:.1f} GiB", mib / 1024);
  return mib >= 10 ? fmt::format("{:.0f} MiB", mib) : fmt::format("{:.1f} MiB", mib);
}

void require_memory(const FrozenModel& model, const TrainingConfig& config,
                    const MachineMemory& machine) {
  const uint64_t need = memory_needed(model, config, machine);
  if (need <= machine.available) return;
  const MemoryPlan plan = plan_memory(model, config, machine.all_processes, machine.deterministic);
  // Of what a setting can lower: all but the program itself, which is the last.
  const auto largest = std::ranges::max_element(plan.items.begin(), plan.items.end() - 1, {},
                                                [](const MemoryItem& item) { return item.bytes; });
  const auto processes = static_cast<uint64_t>(machine.processes);
  const auto copies = static_cast<uint64_t>(weight_copies(model, machine.processes));
  fail(
      "training{} needs {} (the model's weights {}; of what settings can lower most for {}: {}), "
      "but {} are "
      "available; {}",
      processes > 1 ? fmt::format(" with {} processes", processes) : "", format_bytes(need),
      format_bytes(copies * machine.weights), largest->what,
      format_bytes(processes * largest->bytes), format_bytes(machine.available),
      advice_to_fit(model, config, machine));
}

void require_memory_of_weights(const std::filesystem::path& dir, const ModelOptions& options,
                               uint64_t available) {
  uint64_t stored = 0;
  try {
    stored = stored_bytes(dir);
  } catch (const Error&) {
    return;  // loading will say what is wrong with them
  }
  // Of float32 in the file, the most that each option could make of it.
  const uint64_t least = options.weights == WeightFormat::int4   ? stored / 8
                         : options.weights == WeightFormat::int8 ? stored / 4
                         : options.precision == Precision::bf16  ? stored / 2
                                                                 : stored;
  if (least <= available) return;
  fail("{}: the model's weights alone take {} or more, but {} are available; {}", dir.string(),
       format_bytes(least), format_bytes(available),
       options.weights == WeightFormat::automatic && stored / 2 < available
           ? "--weights int8 or int4 holds them in less, or take a smaller model"
           : "take a smaller model");
}

}  // namespace sol
