// sol train: a controller for a frozen model.
#include <utility>
#include <vector>

#include "base/fail.h"
#include "base/file_io.h"
#include "base/threads.h"
#include "commands.h"
#include "common.h"
#include "openblas_environment.h"
#include "text/block_dataset.h"
#include "training/config.h"
#include "training/trainer.h"
#include "validators.h"

namespace sol::app {
namespace {

struct TrainFlags {
  ModelFlags model;
  CLI::Option* seed = nullptr;
  std::filesystem::path config;
  std::vector<std::filesystem::path> data;
  std::filesystem::path cache;
  TrainerOptions options;
  int updates = 0;
  std::vector<std::string> overrides;
};

TrainingConfig read_config(const TrainFlags& flags) {
  std::vector<std::pair<std::string, std::string>> overrides;
  for (const std::string& text : flags.overrides) {
    const size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0) fail("--set {}: write section.key=value", text);
    overrides.emplace_back(text.substr(0, equals), text.substr(equals + 1));
  }
  TrainingConfig config = load_training_config(flags.config, overrides);
  if (flags.updates > 0) config.updates = flags.updates;
  if (flags.seed->count() > 0) config.seed = flags.model.seed;
  return config;
}

std::string describe(const CollectionMetrics& m) {
  std::string text = fmt::format(
      "update {}/{}  reward {:.3f}  ppl {:.2f}  keep {:.2f} prune {:.2f} bits {:.1f}  gaps {:.3f} "
      "{:.3f} {:.3f}  entropy {:.2f} (weight {:.3g})  clip {:.0f} %",
      m.update, m.updates, m.reward, m.perplexity, m.realised[0], m.realised[1], 16 * m.realised[2],
      m.gap[0], m.gap[1], m.gap[2], m.entropy, m.entropy_weight, 100 * m.clip_fraction);
  // Of options that are off unless asked for.
  if (m.budget_range_share < 1)
    text += fmt::format("  upper {:.0f} % of the budgets", 100 * m.budget_range_share);
  if (m.distil_share > 0) text += fmt::format("  distilled {:.0f} %", 100 * m.distil_share);
  return text + fmt::format("  {:.1f} s ({:.0f} tok/s)  {} left", m.seconds,
                            m.decode_tokens_per_second, format_duration(m.seconds_left));
}

void run_train(TrainFlags& flags) {
  choose_openblas_kernels();
  flags.options.deterministic = flags.model.deterministic;
  flags.options.model_name = file_name(flags.model.model_dir());
  flags.options.command = command_line();
  const TrainingConfig config = read_config(flags);
  const std::unique_ptr<FrozenModel> model = load_flagged_model(flags.model);
  require_trainable(model->config(), config, flags.options);  // before minutes of tokenising
  const auto tokenizer = load_flagged_tokenizer(flags.model, *model);
  const std::filesystem::path cache =
      flags.cache.empty() ? flags.options.out / "cache" : flags.cache;
  // From here on there is something to tidy up before ending.
  const std::stop_token stop = interrupt_token();
  const BlockDataset data =
      BlockDataset::open(flags.data, config.text, *tokenizer, config.block_length(), cache, stop);
  note("{}: {} actions, {} updates; {} blocks of {} tokens; {} threads", config.name,
       config.space.size(), config.updates, data.size(), data.block_length(), thread_count());

  ProgressLine progress(30.0);
  std::string last = "collecting the first schedules";
  const TrainingCallbacks callbacks{
      .on_collection =
          [&](const CollectionMetrics& m) {
            last = describe(m);
            progress.update(last);
          },
      .on_batch =
          [&](const BatchProgress& p) {
            if (p.steps < p.target_steps) {
              progress.update(fmt::format("{}  [{}/{}]", last, p.steps, p.target_steps));
            }
          },
      .on_note =
          [&](const std::string& text) {
            progress.finish();
            note("{}", text);
          }};
  const TrainingOutcome outcome =
      train_controller(*model, data, config, flags.options, callbacks, stop);
  progress.finish();
  if (!outcome.finished) throw Cancelled();
  if (const uint64_t peak = model->device_peak_bytes(); peak > 0)
    note("{}: at most {:.2f} GB of memory", model->device(), static_cast<double>(peak) / 1e9);
  note("trained for {} updates; the controller is in {}", outcome.updates,
       flags.options.out.string());
}

}  // namespace

void add_train_command(CLI::App& app) {
  auto flags = std::make_shared<TrainFlags>();
  CLI::App* command = app.add_subcommand("train", "Train a controller for a frozen model");
  command->add_option("config", flags->config, "Training configuration (configs/*.yaml)")
      ->required()
      ->type_name("YAML");
  add_model_flags(*command, flags->model);
  flags->seed = command->get_option("--seed");
  flags->seed->description("Seed of every random draw (default: the configuration's)")
      ->default_str("");
  command->get_option("--deterministic")
      ->description("The same controller, bit for bit, for every thread count (slower)");
  command
      ->add_option("--data", flags->data,
                   "Text to train on: .txt, .jsonl, .raw, also .gz or .zst; repeatable")
      ->required()
      ->type_name("FILE")
      ->allow_extra_args(false);
  command->add_option("-o,--out", flags->options.out, "Directory that becomes the controller")
      ->required()
      ->type_name("DIR");
  command
      ->add_option("--updates", flags->updates, "Optimizer steps, instead of the configuration's")
      ->check(at_least(1));
  command->add_option("--minutes", flags->options.minutes, "End after so many minutes")
      ->check(positive_number());
  command
      ->add_option("--set", flags->overrides,
                   "Override a key of the configuration, as in --set rollout.batch=4; repeatable")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  command
      ->add_option("--init", flags->options.initial,
                   "Start from this controller's policy instead of a fresh one")
      ->type_name("DIR");
  command->add_option("--cache", flags->cache, "Where tokenised text is kept (default: OUT/cache)")
      ->type_name("DIR");
  CLI::Option* resume =
      command->add_flag("--resume", flags->options.resume, "Go on from the checkpoint in OUT");
  command->add_flag("--overwrite", flags->options.overwrite, "Replace a run that OUT holds")
      ->excludes(resume);
  command->callback([flags] { run_train(*flags); });
}

}  // namespace sol::app
