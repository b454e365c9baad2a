// sol reproduce: a whole study from one configuration, and its report.
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <thread>

#include "base/fail.h"
#include "base/file_io.h"
#include "base/threads.h"
#include "commands.h"
#include "common.h"
#include "processes.h"
#include "reproduction/report.h"
#include "reproduction/run.h"
#include "reproduction/training_log.h"
#include "training/config.h"
#include "validators.h"

namespace sol::app {
namespace {

namespace fs = std::filesystem;

struct ReproduceFlags {
  ModelFlags model;
  fs::path config;
  std::vector<fs::path> train, valid, test;
  fs::path out;
  std::vector<std::string> only;
  std::vector<fs::path> beside;
  bool quick = false, report = false, list = false;
};

#ifdef SOL_TRAINING

// `sol train` in a process of its own: LibTorch and its threads stay out of the measurements here,
// and a run that dies leaves its checkpoint.
void run_trainer(const std::vector<std::string>& arguments) {
  const fs::path program = fs::read_symlink("/proc/self/exe").parent_path() / "sol-train";
  // It ends with this process: left alone it would hold its directory's lock against the next call,
  // and slow its measurements.
  const pid_t child = start_child(program, arguments);
  if (child < 0) fail("cannot start {}: {}", program.string(), std::strerror(errno));
  int status = 0;
  bool passed_on = false;
  for (;;) {
    const pid_t ended = waitpid(child, &status, WNOHANG);
    if (ended == child) break;
    if (ended < 0 && errno != EINTR)
      fail("cannot wait for {}: {}", program.string(), std::strerror(errno));
    if (interrupt_token().stop_requested() && !passed_on) {
      kill(child, SIGTERM);
      passed_on = true;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  if (interrupt_token().stop_requested()) throw Cancelled();
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return;
  if (WIFEXITED(status) && WEXITSTATUS(status) == 127) fail("cannot start {}", program.string());
  if (WIFEXITED(status) && WEXITSTATUS(status) > 128) throw Cancelled();
  if (WIFSIGNALED(status))
    fail(
        "training was ended by signal {} ({}); where memory ran out, a smaller rollout.batch helps",
        WTERMSIG(status), strsignal(WTERMSIG(status)));
  fail("training failed; it has said why on standard error");
}

TrainController make_trainer(const ReproduceFlags& flags, const Study& study) {
  return [&flags, &study](const TrainingOrder& order) {
    const StudyController& controller = *order.controller;
    std::vector<std::string> arguments{"sol",
                                       "train",
                                       controller.configuration.string(),
                                       "-m",
                                       flags.model.model_dir().string(),
                                       "-o",
                                       order.out.string(),
                                       "--cache",
                                       order.cache.string(),
                                       "--resume",
                                       "--threads",
                                       std::to_string(thread_count()),
                                       "--device",
                                       flags.model.device,
                                       "--precision",
                                       flags.model.precision,
                                       "--weights",
                                       flags.model.weights,
                                       "--channel-scores",
                                       flags.model.channel_scores,
                                       "--page-scores",
                                       flags.model.page_scores,
                                       "--seed",
                                       std::to_string(order.seed.value_or(study.seed))};
    if (flags.model.deterministic) arguments.push_back("--deterministic");
    if (flags.model.prune_down) arguments.push_back("--prune-down");
    if (flags.model.int8_activations) arguments.push_back("--int8-activations");
    const auto with = [&](const char* name, const std::string& value) {
      arguments.push_back(name);
      arguments.push_back(value);
    };
    for (const fs::path& file : study.train.files) with("--data", file.string());
    for (const auto& [key, value] : controller.overrides) with("--set", key + "=" + value);
    with("--set", study.train.format == TextOptions::Format::wikitext ? "data.format=wikitext"
                                                                      : "data.format=documents");
    if (controller.updates > 0) with("--updates", std::to_string(controller.updates));
    if (controller.minutes > 0) {
      // Of all its runs together; one that has had them is ended by its next collection.
      // Without a checkpoint it begins anew, whatever its log says.
      const bool begun = path_exists(order.out / "checkpoint" / "state.safetensors");
      const double had = begun ? training_seconds(order.out) : 0;
      with("--minutes", std::to_string(std::max(controller.minutes - had / 60, 1e-3)));
    }
    run_trainer(arguments);
  };
}

#else

TrainController make_trainer(const ReproduceFlags&, const Study&) {
  return {};
}

#endif

Study flagged_study(const ReproduceFlags& flags) {
  Study study = load_study(flags.config);
  const auto replace = [](StudyText& text, const std::vector<fs::path>& files) {
    if (files.empty()) return;
    text.files = files;
    text.format = TextOptions::Format::documents;
  };
  replace(study.train, flags.train);
  replace(study.valid, flags.valid);
  replace(study.test, flags.test);
  if (flags.quick) make_quick(study);
  return study;
}

// Before any work: which texts the jobs that are still to do will read.
void require_texts(const Study& study, const StudyResults& results,
                   const std::set<std::string>& sections) {
  std::set<const StudyText*> needed;
  for (const Job& job : wanted_jobs(study, sections))
    if (!results.has(job.name)) needed.insert(job.reads);
  for (const StudyText* text : {&study.train, &study.valid, &study.test})
    if (needed.contains(text) && text->files.empty())
      fail("the study needs {} text: give it in the configuration under data.{}, or with --{}-data",
           text->label, text->name, text->name);
}

// Likewise whether the jobs that are still to do can be run at all: a typing error must not show
// after hours of training.
void require_runnable(const Study& study, const StudyResults& results,
                      const std::set<std::string>& sections, const LlamaConfig& model) {
  const std::vector<Job> jobs = wanted_jobs(study, sections);
  if (jobs.empty()) fail("the study has nothing to do in these sections; --list shows its jobs");
  const auto require_positions = [&](const std::string& what, int64_t positions) {
    if (positions > model.max_position_embeddings)
      fail("{} needs {} positions, but the model has {}", what, positions,
           model.max_position_embeddings);
  };
  const auto to_do = [&](const std::string& name) {
    return !results.has(name) &&
           std::ranges::any_of(jobs, [&](const Job& job) { return job.name == name; });
  };
  const auto& experiments = study.experiments;
  require_positions("evaluation.context", int64_t{study.context} + 1);
  if (to_do("pollution"))
    require_positions("experiments.pollution", int64_t{experiments.pollution.prefix} +
                                                   experiments.pollution.corrupted +
                                                   experiments.pollution.tail);
  for (const StudyFamily& family : study.families)
    for (const StudyController& controller : family.controllers) {
      const std::string name = fmt::format("{}/{}", family.name, controller.name);
      if (to_do(free_job(family.name, controller.name)))
        require_positions("experiments.free", int64_t{experiments.free.prompt_tokens} +
                                                  int64_t{experiments.free.tokens});
      if (controller.configuration.empty() || !to_do(train_job(family.name, controller.name)))
        continue;
      try {
        const TrainingConfig config =
            load_training_config(controller.configuration, controller.overrides);
        require_positions("evaluation.context with rollout.horizon",
                          int64_t{study.context} + config.horizon);
        for (const int context : experiments.transfer.contexts)
          if (to_do(transfer_job(family.name, controller.name, fmt::format("context-{}", context))))
            require_positions(fmt::format("a transfer to a context of {}", context),
                              int64_t{context} + config.horizon);
      } catch (const Error& error) {
        fail("{}: {}", name, error.what());
      }
    }
}

void write_report(const Study& study, const StudyResults& results, const ReproduceFlags& flags) {
  write_study_report(study, results, flags.beside);
  print("report: {}\n", (results.dir() / "report.html").string());
}

std::string short_job(const StudyProgress& p) {
  std::string text = fmt::format("[{}/{}] {}", p.number, p.jobs, p.job);
  if (p.share > 0) text += fmt::format("  {:.0f} %", 100 * p.share);
  if (p.seconds_left >= 0) text += fmt::format("  {} left in all", format_duration(p.seconds_left));
  return text;
}

void list_jobs(const Study& study, const std::set<std::string>& sections) {
  for (const Job& job : wanted_jobs(study, sections))
    print("{:<10} {}\n", job.sections.front(), job.name);
}

int count_missing(const Study& study, const StudyResults& results) {
  int missing = 0;
  for (const Job& job : plan_jobs(study)) missing += results.has(job.name) ? 0 : 1;
  return missing;
}

void run_reproduce(ReproduceFlags& flags) {
  Study study = flagged_study(flags);
  const std::set<std::string> sections(flags.only.begin(), flags.only.end());
  if (flags.list) return list_jobs(study, sections);
  if (flags.out.empty()) fail("name with -o the directory that the results go to");
  require_replaceable_report(flags.out);
  for (const fs::path& other : flags.beside) StudyResults::read(other);  // before hours of work
  wanted_jobs(study, sections);  // a misspelt section is an error before the model is loaded
  if (flags.report) {
    const StudyResults results = StudyResults::read(flags.out);
    results.require_study(study.to_json());
    write_report(study, results, flags);
    return;
  }
  // The flag counts before the study's model, which counts before the embedded one.
  if (flags.model.model.empty()) flags.model.model = study.model;
  const fs::path dir = flags.model.model_dir();
  const std::unique_ptr<FrozenModel> model = load_flagged_model(flags.model);
  const RunInfo run = describe_run(*model, file_name(dir), study.seed, command_line());
  Json identity = study.to_json();
  const auto tokenizer = load_flagged_tokenizer(flags.model, *model);
  identity["model"] = run.model;
  identity["model_fingerprint"] = run.model_fingerprint;
  identity["precision"] = run.precision;
  // Studies of before there was a choice go on.
  if (run.device != native_device) identity["device"] = run.device;
  identity["weights"] = run.weights;
  identity["outside_paper"] = run.outside_paper;
  identity["tokenizer"] = tokenizer->fingerprint();
  identity["deterministic"] = flags.model.deterministic;
  ensure_writable_directory(flags.out);
  const DirectoryLock lock(flags.out);
  StudyResults results = StudyResults::open(flags.out, identity);
  require_runnable(study, results, sections, model->config());
  require_texts(study, results, sections);

  ProgressLine progress(30.0);
  Laboratory lab({.model = model.get(),
                  .tokenizer = tokenizer,
                  .study = &study,
                  .results = &results,
                  .train = make_trainer(flags, study),
                  .deterministic = flags.model.deterministic,
                  .model_name = dir.string(),
                  .stop = interrupt_token(),
                  .on_note = [&](const std::string& text) {
                    progress.finish();
                    note("note: {}", text);
                  }});
  const StudyCallbacks callbacks{
      .on_progress = [&](const StudyProgress& p) { progress.update(short_job(p)); },
      .on_finished =
          [&](const std::string& job, double seconds) {
            progress.finish();
            note("{} done in {}", job, format_duration(seconds));
          },
      .on_failed =
          [&](const std::string& job, const std::string& error) {
            progress.finish();
            note("{} failed: {}", job, error);
          }};
  StudyOutcome outcome;
  try {
    outcome = run_study(lab, run, sections, callbacks);
  } catch (const Cancelled&) {
    progress.finish();
    try {
      write_report(study, results, flags);
    } catch (const std::exception& error) {  // that it was interrupted counts more
      note("no report: {}", error.what());
    }
    note("interrupted; the same command goes on");
    throw;
  }
  progress.finish();
  write_report(study, results, flags);
  if (!outcome.failed.empty())
    fail("{} of the study's jobs failed, see above; the same command tries them again",
         outcome.failed.size());
  const int missing = count_missing(study, results);
  if (missing > 0) note("{} jobs of the other sections are not done", missing);
}

}  // namespace

void add_reproduce_command(CLI::App& app) {
  auto flags = std::make_shared<ReproduceFlags>();
  CLI::App* command = app.add_subcommand(
      "reproduce", "The paper's experiments on a model: trains, evaluates, writes one report");
  command->add_option("config", flags->config, "Study (configs/studies/*.yaml)")
      ->required()
      ->type_name("YAML");
  add_model_flags(*command, flags->model);
  const auto text = [&](const char* name, std::vector<fs::path>& files, const char* what) {
    command->add_option(name, files, what)->type_name("FILE")->allow_extra_args(false);
  };
  text("--train-data", flags->train, "Text to train on instead of the study's; repeatable");
  text("--valid-data", flags->valid, "Text for choosing settings, likewise");
  text("--test-data", flags->test, "Text to report on, likewise");
  command->add_option("-o,--out", flags->out, "Directory of the results; the same one goes on")
      ->type_name("DIR");
  command
      ->add_option("--only", flags->only,
                   "Only these sections and what they need: training, spaces, landscape, search, "
                   "single, horizons, pollution, scaling, ours")
      ->delimiter(',')
      ->type_name("SECTIONS");
  command->add_flag("--quick", flags->quick,
                    "Everything in small, to see that it runs: the figures mean nothing");
  command->add_flag("--list", flags->list, "Print the jobs and end");
  command->add_flag("--report", flags->report, "Only write the report of what there is in DIR");
  command
      ->add_option("--beside", flags->beside,
                   "Results of the same study on another model, for the section on scaling; "
                   "repeatable")
      ->type_name("DIR")
      ->allow_extra_args(false);
  command->callback([flags] { run_reproduce(*flags); });
}

}  // namespace sol::app
