// sol plan: what training a controller will take, before it starts.
#include <algorithm>

#include "base/fail.h"
#include "base/system_memory.h"
#include "base/threads.h"
#include "commands.h"
#include "common.h"
#include "openblas_environment.h"
#include "training/memory_plan.h"
#include "training/time_plan.h"
#include "training/trainer.h"
#include "training_flags.h"
#include "validators.h"

namespace sol::app {
namespace {

struct PlanFlags {
  ModelFlags model;
  TrainingConfigFlags config;
  int processes = 1;
};

void print_memory(const FrozenModel& model, const TrainingConfig& config,
                  const MachineMemory& machine) {
  const int processes = machine.processes;
  const MemoryPlan plan = plan_memory(model, config, processes, machine.deterministic);
  print("memory{}\n", processes > 1 ? fmt::format(" of each of {} processes", processes) : "");
  print("  {:<36}{:>10}{}\n", "weights, as loaded", format_bytes(machine.weights),
        processes > 1 && weight_copies(model, processes) == 1 ? "  once for all" : "");
  for (const MemoryItem& item : plan.items)
    print("  {:<36}{:>10}\n", item.what, format_bytes(item.bytes));
  if (!plan.gpu_items.empty()) {
    uint64_t together = 0;
    for (const MemoryItem& item : plan.gpu_items) together += item.bytes;
    print("  {:<36}{:>10}\n", "on the GPU, beside all this", format_bytes(together));
    for (const MemoryItem& item : plan.gpu_items)
      print("    {:<34}{:>10}\n", item.what, format_bytes(item.bytes));
  }
  print("  {:<36}{:>10}  of {} available\n",
        processes > 1 ? fmt::format("together, {} processes", processes) : "together",
        format_bytes(memory_needed(model, config, machine)), format_bytes(machine.available));
  if (const std::string advice = advice_to_fit(model, config, machine); !advice.empty()) {
    print("  does not fit: {}\n", advice);
    return;
  }
  TrainingConfig larger = config;
  int fits = config.batch;
  for (; larger.is_valid() && advice_to_fit(model, larger, machine).empty(); larger.batch *= 2)
    fits = larger.batch;
  if (fits > config.batch) print("  fits; so would batches of {} inputs\n", fits);
}

void print_time(const TrainingConfig& config, const TimePlan& plan, int processes) {
  const double batch_steps = static_cast<double>(config.batch) * config.schedules * config.horizon;
  print("time on this machine, one process of {}\n", counted(thread_count(), "thread"));
  print("  {:<36}{:>8.2f} s  {:.0f} tokens/s\n",
        fmt::format("dense pass of {} inputs", config.batch), plan.prefill,
        static_cast<double>(config.batch) * config.context / plan.prefill);
  print("  {:<36}{:>8.2f} s  {:.0f} tokens/s\n",
        fmt::format("{} schedules of {} steps", config.batch * config.schedules, config.horizon),
        plan.decode + plan.policy, batch_steps / (plan.decode + plan.policy));
  print("  {:<36}{:>8.2f} s\n", "  of which the policy", plan.policy);
  print("  {:<36}{:>8.2f} s\n", fmt::format("update, {} minibatches", plan.minibatches),
        plan.update(config.grad_accum));
  const double collection = plan.collection(config.grad_accum);
  print("  {:<36}{:>8.2f} s\n",
        fmt::format("a collection: {} batch{}", plan.batches, plan.batches > 1 ? "es" : ""),
        collection);
  print("  {:<36}{:>10}\n", fmt::format("{} updates", config.updates),
        format_duration(collection * plan.collections));
  if (processes > 1)
    print("  {} processes share these processors, and take about as long or less\n", processes);
}

// On more machines like this one, joined by a network of 10 Gbit/s.
void print_machines(const TrainingConfig& config, const TimePlan& plan) {
  constexpr double bytes_per_second = 1.2e9;
  const double one = collection_seconds(plan, config, 1, bytes_per_second);
  print(
      "on several machines like this one, joined by 10 Gbit/s (the policy's gradients, {}, are "
      "summed over it at every AdamW step)\n",
      format_bytes(plan.gradient_bytes));
  for (const int machines : {2, 4, 8}) {
    if (machines > config.batch) {
      print("  {} machines need --set rollout.batch={} or more\n", machines, machines);
      continue;
    }
    // The slowest has the most inputs of a batch.
    const double most = static_cast<double>((config.batch + machines - 1) / machines);
    const double imbalance = most * machines / config.batch;
    const double seconds = collection_seconds(plan, config, machines, bytes_per_second) * imbalance;
    print("  {:<36}{:>10}  {:.1f} times as fast\n", fmt::format("{} machines", machines),
          format_duration(seconds * plan.collections), one / seconds);
  }
}

void run_plan(PlanFlags& flags) {
  choose_openblas_kernels();
  const TrainingConfig config = read_config(flags.config, flags.model.seed);
  require_shareable(config, flags.processes, flags.model.deterministic);
  const uint64_t available = flags.config.available(), before = resident_memory();
  require_weights_fit(flags.model, available);
  const std::unique_ptr<FrozenModel> model = load_flagged_model(flags.model);
  require_positions(model->config(), config);
  const uint64_t after = resident_memory();
  const uint64_t weights = after - std::min(after, before);
  print("{} on {}: {:.1f} M parameters as {}, {} actions, context {}, T = {}, K = {}, B = {}\n",
        config.name, file_name(flags.model.model_dir()),
        static_cast<double>(model->parameter_count()) / 1e6, weights_name(*model),
        config.space.size(), config.context, config.horizon, config.schedules, config.batch);
  const auto machine =
      MachineMemory::alone(flags.processes, weights, available, flags.model.deterministic);
  print_memory(*model, config, machine);
  require_memory(*model, config, machine);
  note("measuring");
  // Nothing is there that would have to be tidied up, so signals end this at once, as they could
  // not between products that take seconds each.
  const TimePlan plan = measure_time(*model, config, flags.model.deterministic);
  print_time(config, plan, flags.processes);
  print_machines(config, plan);
}

}  // namespace

void add_plan_command(CLI::App& app) {
  auto flags = std::make_shared<PlanFlags>();
  CLI::App* command = app.add_subcommand(
      "plan", "What training a controller will take in memory and time, by a short measurement");
  add_training_config_flags(*command, flags->config, flags->model);
  command
      ->add_option("--processes", flags->processes,
                   "Memory of so many processes on this machine, as in `sol train --processes`")
      ->check(in_range(1, 1024))
      ->capture_default_str();
  command->callback([flags] { run_plan(*flags); });
}

}  // namespace sol::app
