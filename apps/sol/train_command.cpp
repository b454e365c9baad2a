// sol train: a controller for a frozen model.
#include <algorithm>
#include <cstdlib>
#include <new>
#include <optional>
#include <utility>
#include <vector>

#include "base/fail.h"
#include "base/file_io.h"
#include "base/stopwatch.h"
#include "base/system_memory.h"
#include "base/threads.h"
#include "commands.h"
#include "common.h"
#include "corpus_progress.h"
#include "cost_file.h"
#include "openblas_environment.h"
#include "processes.h"
#include "text/block_dataset.h"
#include "text/corpus_files.h"
#include "training/config.h"
#include "training/memory_plan.h"
#include "training/rank_agreement.h"
#include "training/rank_environment.h"
#include "training/run_log.h"
#include "training/shared_model.h"
#include "training/trainer.h"
#include "training_flags.h"
#include "validators.h"

namespace sol::app {
namespace {

struct TrainFlags {
  ModelFlags model;
  TrainingConfigFlags config;
  std::vector<std::filesystem::path> data;
  std::filesystem::path corpus;  // instead of `data`
  std::filesystem::path cache, costs;
  TrainerOptions options;
  int processes = 0;
};

std::string describe(const CollectionMetrics& m) {
  std::string text = fmt::format(
      "update {}/{}  reward {:.3f}  ppl {:.2f}  keep {:.2f} prune {:.2f} bits {:.1f}  {}  entropy "
      "{:.2f} (weight {:.3g})  clip {:.0f} %",
      m.update, m.updates, m.reward, m.perplexity, m.realised[0], m.realised[1], 16 * m.realised[2],
      m.realised_time
          ? fmt::format("time {:.3f} gap {:.3f}", *m.realised_time, m.time_gap.value_or(0))
          : fmt::format("gaps {:.3f} {:.3f} {:.3f}", m.gap[0], m.gap[1], m.gap[2]),
      m.entropy, m.entropy_weight, 100 * m.clip_fraction);
  // Of options that are off unless asked for.
  if (m.budget_range_share < 1)
    text += fmt::format("  upper {:.0f} % of the budgets", 100 * m.budget_range_share);
  if (m.distil_share > 0) text += fmt::format("  distilled {:.0f} %", 100 * m.distil_share);
  return text + fmt::format("  {:.1f} s ({:.0f} tok/s)  {} left", m.seconds,
                            m.decode_tokens_per_second, format_duration(m.seconds_left));
}

// Before any work: which of the two options takes what was named, and whether the run's own files
// would be among it.
void require_right_kind_of_data(const TrainFlags& flags) {
  for (const std::filesystem::path& file : flags.data)
    if (std::error_code unknown; std::filesystem::is_directory(file, unknown))
      fail("--data {}: is a directory; --train-data takes one, --data takes files", file.string());
  if (std::error_code unknown;
      !flags.corpus.empty() && std::filesystem::is_regular_file(flags.corpus, unknown))
    fail("--train-data {}: is a file; --data takes one, --train-data takes a directory",
         flags.corpus.string());
  if (!flags.corpus.empty()) require_outside_corpus(flags.options.out, flags.corpus);
  RunLog::refuse_other_log(flags.options.out, flags.data);
}

// --data's files, --train-data's corpus, prepared in the cache where that has not been done, or
// data that `sol prepare` has left.
BlockDataset open_data(const TrainFlags& flags, const TrainingConfig& config,
                       const Tokenizer& tokenizer, const std::stop_token& stop) {
  const std::filesystem::path cache =
      flags.cache.empty() ? flags.options.out / "cache" : flags.cache;
  const int length = config.block_length();
  if (flags.corpus.empty())
    return BlockDataset::open(flags.data, config.text, tokenizer, length, cache, stop);
  if (is_prepared_data(flags.corpus))
    return BlockDataset::open_prepared(flags.corpus, tokenizer, length);
  const CorpusOptions options{.text_field = config.text.text_field};
  const auto prepared = prepared_cache_path(cache, flags.corpus, options, tokenizer);
  CorpusProgress progress;
  progress.finish(prepare_corpus(flags.corpus, prepared, options, tokenizer, false,
                                 progress.callbacks(), stop));
  return BlockDataset::open_prepared(prepared, tokenizer, length);
}

// One process of each machine tokenises what is not in the cache yet, before the others read what
// that one wrote.
BlockDataset open_data_together(const TrainFlags& flags, const TrainingConfig& config,
                                const Tokenizer& tokenizer, const std::stop_token& stop,
                                const RankEnvironment& ranks, ProcessGroup& group) {
  std::optional<BlockDataset> data;
  if (ranks.local_rank == 0) data = open_data(flags, config, tokenizer, stop);
  group.any(false);
  if (!data) data = open_data(flags, config, tokenizer, stop);
  return std::move(*data);
}

// On a LibTorch device each process loads a model of its own; of several on a machine, each takes
// the GPU of its number unless one is named.
std::unique_ptr<FrozenModel> load_trained_model(const ModelFlags& flags,
                                                const RankEnvironment& ranks, ProcessGroup& group) {
  if (flags.device == native_device)
    return load_shared_model(flags.model_dir(), model_options(flags), ranks, group);
  const bool own_gpu = flags.device == "cuda" && ranks.local_size > 1;
  const std::string device = own_gpu ? fmt::format("cuda:{}", ranks.local_rank) : flags.device;
  return load_on_device(flags.model_dir(), device, model_options(flags));
}

// What processes of one run must have been started with alike, and what only shows when one of them
// waits for the others in vain. Directories may have different names on different machines.
Json launch_record(const TrainFlags& flags, const TrainingConfig& config) {
  return {{"config", config.to_json()},
          {"--deterministic", flags.options.deterministic},
          {"--minutes", flags.options.minutes},
          {"--init", flags.options.initial.empty() ? "absent" : "given"},
          {"--device", flags.model.device.substr(0, flags.model.device.find(':'))}};
}

// A process that trains, alone or as one of several. Only the leading one speaks of progress.
void train(TrainFlags& flags, const RankEnvironment& ranks, ProcessGroup& group) {
  flags.options.deterministic = flags.model.deterministic;
  flags.options.model_name = file_name(flags.model.model_dir());
  flags.options.command = command_line();
  flags.options.group = &group;
  const TrainingConfig config = read_config(flags.config, flags.model.seed);
  require_same_on_all_ranks(launch_record(flags, config), group);
  // The processors of a machine are shared by its processes.
  set_thread_count(flags.model.threads);
  if (flags.model.threads == 0 && ranks.local_size > 1) {
    const int share = std::max(1, usable_processors() / ranks.local_size);
    flags.model.threads = std::min(share, thread_count());
    set_thread_count(flags.model.threads);
  }
  const uint64_t available = flags.config.available(), before = resident_memory();
  const std::unique_ptr<FrozenModel> model = load_trained_model(flags.model, ranks, group);
  if (!flags.costs.empty())
    flags.options.costs = std::make_shared<const CostTable>(
        read_costs_to_train(flags.costs, *model, config.horizon, config.sequence));
  // Before minutes of tokenising.
  if (group.leads()) require_trainable(model->config(), config, flags.options);
  if (ranks.local_rank == 0) {
    const uint64_t after = resident_memory();
    require_memory(*model, config,
                   {.processes = ranks.local_size,
                    .all_processes = ranks.size,
                    .weights = after - std::min(after, before),
                    .available = available,
                    .deterministic = flags.options.deterministic});
  }
  const auto tokenizer = load_flagged_tokenizer(flags.model, *model);
  // From here on there is something to tidy up before ending.
  const std::stop_token stop = interrupt_token();
  const BlockDataset data = open_data_together(flags, config, *tokenizer, stop, ranks, group);
  if (!group.leads()) {
    if (!train_controller(*model, data, config, flags.options, {}, stop).finished)
      throw Cancelled();
    return;
  }
  note("{}: {} actions, {}; {} blocks of {} tokens; {}{}", config.name, config.space.size(),
       counted(config.updates, "update"), data.size(), data.block_length(),
       group.size() > 1 ? fmt::format("{} processes, here ", group.size()) : std::string(),
       counted(thread_count(), "thread"));

  note("a batch: a dense pass of {} x {} tokens, then {} steps of {} schedules", config.batch,
       config.context, config.horizon, config.batch * config.schedules);
  ProgressLine progress(30.0);
  std::string last = "collecting the first schedules", collected;
  Stopwatch since_batch;
  const TrainingCallbacks callbacks{
      .on_collection =
          [&](const CollectionMetrics& m) {
            last = describe(m);
            collected.clear();
            since_batch = {};
            progress.update(last);
          },
      .on_batch =
          [&](const BatchProgress& p) {
            if (p.steps < p.target_steps) {
              collected = fmt::format("  [{}/{}]", p.steps, p.target_steps);
              since_batch = {};
              progress.update(last + collected);
            }
          },
      .on_rollout =
          [&](int step, int of) {
            if (since_batch.seconds() < 5) return;  // batches say enough
            progress.update(last + collected + fmt::format("  step {} of {}", step, of));
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
  note("trained for {}; the controller is in {}", counted(outcome.updates, "update"),
       flags.options.out.string());
}

void train_as_rank(TrainFlags& flags, const RankEnvironment& ranks) {
  try {
    const GroupOptions options;
    require_known_address(ranks);
    // Those that somebody else starts may come minutes apart, or never.
    if (!started_by_run_processes())
      note("rank {} of {}: waiting for the other processes at {}:{}, {:.0f} s at most", ranks.rank,
           ranks.size, ranks.address, ranks.port, options.connect_seconds);
    const std::unique_ptr<ConnectedGroup> group = connect_processes(ranks, options);
    try {
      train(flags, ranks, *group);
    } catch (const Cancelled&) {
      throw;  // on all of them
    } catch (const std::exception& e) {
      group->report_failure(e.what());
      throw;
    }
  } catch (const Cancelled&) {
    if (ranks.rank == 0) throw;
    throw CancelledQuietly();  // the leading process says it
  } catch (const std::bad_alloc&) {
    fail("rank {}: out of memory", ranks.rank);
  } catch (const std::exception& e) {
    fail("rank {}: {}", ranks.rank, e.what());
  }
}

void run_train(TrainFlags& flags) {
  choose_openblas_kernels();
  end_with_parent();
  const std::optional<RankEnvironment> ranks = rank_environment();
  if (ranks && flags.processes > 0 && !started_by_run_processes())
    fail(
        "--processes {}: by its environment (RANK and WORLD_SIZE, or mpirun's variables) this "
        "process is one of {} processes already; leave out one of the two",
        flags.processes, ranks->size);
  require_right_kind_of_data(flags);
  const int processes = ranks ? ranks->size : flags.processes;
  if (processes > 1)
    require_shareable(read_config(flags.config, flags.model.seed), processes,
                      flags.model.deterministic);
  require_weights_fit(flags.model, flags.config.available());
  if (!ranks && flags.processes > 1) {
    set_thread_count(flags.model.threads);  // too many are said once, before any is started
    if (const int code = run_processes(flags.processes); code != 0) std::exit(code);
    return;
  }
  if (ranks && ranks->size > 1)
    train_as_rank(flags, *ranks);
  else
    train(flags, RankEnvironment(), *alone());
}

}  // namespace

void add_train_command(CLI::App& app) {
  auto flags = std::make_shared<TrainFlags>();
  CLI::App* command = app.add_subcommand("train", "Train a controller for a frozen model");
  add_training_config_flags(*command, flags->config, flags->model);
  command->get_option("--deterministic")
      ->description("The same controller, bit for bit, for every thread count (slower)");
  CLI::Option_group* data = command->add_option_group("data", "What to train on, one of");
  data->add_option("--data", flags->data,
                   "Text to train on: .txt, .jsonl, .raw, also .gz or .zst; repeatable")
      ->type_name("FILE")
      ->allow_extra_args(false);
  data->add_option("--train-data", flags->corpus,
                   "Corpus to train on: a directory of .jsonl, .jsonl.gz, .jsonl.zst, .json.gz, "
                   ".json.zst, or what `sol prepare` made of one")
      ->type_name("DIR");
  data->require_option(1);
  command->add_option("-o,--out", flags->options.out, "Directory that becomes the controller")
      ->required()
      ->type_name("DIR");
  command
      ->add_option("--processes", flags->processes,
                   "Train with so many processes on this machine, which share the model's memory; "
                   "torchrun and mpirun start them on several")
      ->check(in_range(1, 1024));
  command
      ->add_option("--costs", flags->costs,
                   "What steps cost, measured by `sol calibrate`: for a configuration whose budget "
                   "is a time")
      ->type_name("FILE");
  command->add_option("--minutes", flags->options.minutes, "End after so many minutes")
      ->check(positive_number(1e9));
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
