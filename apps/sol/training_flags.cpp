#include "training_flags.h"

#include <utility>

#include "base/fail.h"
#include "base/system_memory.h"
#include "training/lanes.h"
#include "training/memory_plan.h"
#include "validators.h"

namespace sol::app {
namespace {

// Far more than any machine has; its bytes still fit into 64 bits.
constexpr double most_gib = 1 << 30;

}  // namespace

uint64_t TrainingConfigFlags::available() const {
  return memory_limit > 0 ? static_cast<uint64_t>(memory_limit * (1 << 30)) : available_memory();
}

void add_training_config_flags(CLI::App& command, TrainingConfigFlags& flags, ModelFlags& model) {
  command.add_option("config", flags.file, "Training configuration (configs/*.yaml)")
      ->required()
      ->type_name("YAML");
  add_model_flags(command, model);
  add_seed_flag(command, model);
  flags.seed = command.get_option("--seed");
  flags.seed->description("Seed of every random draw (default: the configuration's)")
      ->default_str("");
  command.add_option("--updates", flags.updates, "Optimizer steps, instead of the configuration's")
      ->check(at_least(1));
  command
      .add_option("--set", flags.overrides,
                  "Override a key of the configuration, as in --set rollout.batch=4; repeatable")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  command
      .add_option("--memory-limit", flags.memory_limit,
                  "What this machine may give, model included (default: what is available)")
      ->check(positive_number(most_gib))
      ->type_name("GIB");
}

TrainingConfig read_config(const TrainingConfigFlags& flags, uint64_t seed) {
  std::vector<std::pair<std::string, std::string>> overrides;
  for (const std::string& text : flags.overrides) {
    const size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0) fail("--set {}: write section.key=value", text);
    overrides.emplace_back(text.substr(0, equals), text.substr(equals + 1));
  }
  TrainingConfig config = load_training_config(flags.file, overrides);
  if (flags.updates > 0) config.updates = flags.updates;
  if (flags.seed->count() > 0) config.seed = seed;
  return config;
}

void require_shareable(const TrainingConfig& config, int processes, bool deterministic) {
  Lanes::share(config.batch, config.schedules, deterministic, 0, processes);
}

void require_weights_fit(const ModelFlags& model, uint64_t available) {
  if (!model.device.starts_with("cuda"))
    require_memory_of_weights(model.model_dir(), model_options(model), available);
}

}  // namespace sol::app
