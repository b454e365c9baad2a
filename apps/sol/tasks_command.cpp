// sol tasks: downstream tasks, densely and under policies.
#include <algorithm>
#include <limits>
#include <memory>
#include <optional>
#include <set>

#include "base/fail.h"
#include "base/file_io.h"
#include "base/hash.h"
#include "commands.h"
#include "evaluation/named_policy.h"
#include "evaluation/tasks/task_files.h"
#include "evaluation_flags.h"
#include "model/chat_template.h"
#include "policy/action_json.h"
#include "validators.h"

namespace sol::app {
namespace {

struct TasksFlags {
  EvaluationFlags evaluation;
  std::vector<std::string> tasks, data, modes, policies;
  std::vector<double> net_keeps;
  std::vector<double> keep, prune, bits;  // a budget each position; one value counts for all
  std::optional<int64_t> limit;
  std::optional<int> shots;
  bool plain = false, list = false;
  std::filesystem::path out;
};

// What is asked for when nothing is said.
constexpr double default_net_keeps[] = {0.6, 0.7, 0.8, 0.9};

void print_list() {
  for (const TaskInfo& task : known_tasks())
    print("{:<30} {}\n{:<30} {}\n", task.name, task.summary, "", task.files);
}

size_t listed_budgets(const TasksFlags& flags) {
  return std::max({flags.keep.size(), flags.prune.size(), flags.bits.size()});
}

void check_budget_lists(const TasksFlags& flags) {
  const size_t count = listed_budgets(flags);
  for (const auto* values : {&flags.keep, &flags.prune, &flags.bits})
    if (values->size() > 1 && values->size() != count)
      fail(
          "--keep, --prune, --bits: {}, {} and {} values; the first of each are one budget, the "
          "second another: give lists of one length, or one value for all",
          flags.keep.size(), flags.prune.size(), flags.bits.size());
}

// The budget at one position of the lists; an axis without any is dense.
BudgetFlags listed_budget(const TasksFlags& flags, size_t position) {
  const auto at = [&](const std::vector<double>& values) -> std::optional<double> {
    if (values.empty()) return std::nullopt;
    return values[values.size() == 1 ? 0 : position];
  };
  return {at(flags.keep), at(flags.prune), at(flags.bits), {}};
}

void check_flags(const TasksFlags& flags) {
  if (flags.tasks.empty()) fail("name tasks with --tasks; `sol tasks --list` shows them");
  if (flags.data.empty()) fail("name the tasks' data with --data: a directory, or NAME=FILE");
  if (flags.out.empty()) fail("name the directory of the results with -o");
  const auto twice = [](const std::vector<std::string>& names, const char* option) {
    std::set<std::string> seen;
    for (const std::string& name : names)
      if (!seen.insert(name).second) fail("{}: {} is given twice", option, name);
  };
  twice(flags.tasks, "--tasks");
  twice(flags.policies, "--policies");
  twice(flags.modes, "--mode");
  check_budget_lists(flags);
}

// Tasks first: what is wrong with them is found before the model is loaded.
std::vector<Task> load_tasks(const TasksFlags& flags) {
  TaskData data;
  for (const std::string& argument : flags.data) data.add(argument);
  std::vector<Task> tasks;
  for (const std::string& name : flags.tasks) {
    TaskOptions options;
    options.limit = flags.limit.value_or(-1);
    if (flags.shots && name.starts_with("mmlu_")) options.shots = *flags.shots;
    tasks.push_back(load_task(name, data, options));
  }
  if (flags.shots &&
      std::ranges::none_of(flags.tasks, [](const auto& name) { return name.starts_with("mmlu_"); }))
    fail("--num-fewshot: only MMLU's number of examples can be chosen, and no such task is named");
  return tasks;
}

// Files and directories that are read.
std::vector<std::filesystem::path> inputs_of(const TasksFlags& flags) {
  std::vector<std::filesystem::path> inputs = evaluation_inputs(flags.evaluation);
  for (const std::string& argument : flags.data)  // a directory, or NAME=FILE
    inputs.emplace_back(argument.substr(argument.find('=') + 1));
  return inputs;
}

std::vector<std::string> chosen_policies(const TasksFlags& flags, const EvaluationSetup& setup) {
  if (!flags.policies.empty()) return flags.policies;
  if (setup.controller) return {"learned", "fixed"};
  if (setup.space) return {"fixed"};
  return {};
}

void choose_modes(const TasksFlags& flags, bool policies, TaskPlan& plan) {
  const auto named = [&](const char* mode) {
    return std::ranges::find(flags.modes, mode) != flags.modes.end();
  };
  plan.prefill = flags.modes.empty() ? !policies : named("prefill");
  plan.decode = flags.modes.empty() ? policies : named("decode");
  if (!flags.policies.empty() && !plan.decode)
    fail("policies act in decode mode only; add --mode decode or leave out --policies");
}

void choose_budgets(const TasksFlags& flags, const EvaluationSetup& setup, TaskPlan& plan) {
  const size_t listed = listed_budgets(flags);
  if (std::ranges::none_of(plan.policies, &TaskPolicy::budgeted)) {
    if (listed > 0 || !flags.net_keeps.empty())
      fail("no policy here takes a budget; leave out --budget, --keep, --prune, --bits");
    return;
  }
  const Controller* controller = setup.controller_or_null();
  if (listed > 0) {
    for (size_t i = 0; i < listed; ++i)
      plan.budgets.push_back(
          flagged_budget(listed_budget(flags, i), controller, &setup.require_space()));
  } else if (!flags.net_keeps.empty()) {
    for (const double net : flags.net_keeps) {
      plan.budgets.push_back(flagged_budget({{}, {}, {}, net}, controller, nullptr));
      plan.net_keeps.push_back(net);
    }
  } else if (controller && !controller->settings().frontier.empty()) {
    const auto& frontier = controller->settings().frontier;
    for (const double net : default_net_keeps) {
      if (net < frontier.front().net_keep || net > frontier.back().net_keep) {
        note(
            "note: net keep-rate {} lies outside the controller's frontier ({:.3f} to {:.3f}) and "
            "is "
            "left out",
            net, frontier.front().net_keep, frontier.back().net_keep);
        continue;
      }
      plan.budgets.push_back(controller->budget_for_net_keep(net));
      plan.net_keeps.push_back(net);
    }
  }
  if (plan.budgets.empty())
    fail(
        "name a budget: --keep, --prune, --bits, or --budget with a controller that has a "
        "frontier");
  if (controller)
    for (const Budget& budget : plan.budgets)
      if (const std::string outside = controller->outside_trained_ranges(budget); !outside.empty())
        note("note: {}", outside);
}

// What decides every cell's result beside the task: a cell is taken from an earlier run only where
// all of this is the same.
Json identity_of(const TasksFlags& flags, const EvaluationSetup& setup,
                 const Tokenizer& tokenizer) {
  const RunInfo& run = setup.run;
  const LlamaConfig& config = setup.model->config();
  Json json = {
      {"version", run.version},
      {"commit", run.commit},
      {"model", run.model_fingerprint},
      // In none of the fingerprints: where windows and prompts are cut, and answers end.
      {"positions", config.max_position_embeddings},
      {"end_tokens", config.eos_token_ids},
      {"tokenizer", tokenizer.fingerprint()},
      {"bos", tokenizer.bos_token_id()},
      {"eos", tokenizer.eos_token_id()},
      {"device", run.device},
      {"precision", run.precision},
      {"weights", run.weights},
      {"outside_paper", run.outside_paper},
      {"isa", run.isa},
      {"deterministic", flags.evaluation.model.deterministic},
      {"seed", run.seed},
      {"controller", setup.controller
                         ? hash_128(read_file(flags.evaluation.controller / "controller.json"))
                         : ""},
      {"space", setup.space ? action_space_to_json(*setup.space) : Json(nullptr)},
      {"horizon", setup.protocol.horizon}};
  json.update(to_json(setup.protocol.sequence));
  return json;
}

// How prompts of tasks that generate are written; empty: as plain text.
ChatFormat chosen_chat(const TasksFlags& flags, const std::vector<Task>& tasks, TaskPlan& plan) {
  const auto generates = std::ranges::find(tasks, TaskKind::generation, &Task::kind);
  if (generates == tasks.end()) {
    if (flags.plain) fail("--plain: none of these tasks is asked as a chat");
    return {};
  }
  if (flags.plain) return {};
  const std::filesystem::path dir = flags.evaluation.model.model_dir();
  auto chat = ChatTemplate::find(dir);
  if (!chat)
    fail(
        "{} asks through the model's chat template, and {} has none; --plain asks in plain text, "
        "which is another task",
        generates->name, dir.string());
  plan.chat = true;
  plan.chat_template = chat->fingerprint();
  return [chat = std::move(*chat)](const std::vector<ChatMessage>& messages) {
    return chat.apply(messages);
  };
}

void run_tasks_command(TasksFlags& flags) {
  if (flags.list) return print_list();
  check_flags(flags);
  const std::vector<Task> tasks = load_tasks(flags);
  ensure_writable_directory(flags.out);
  ensure_writable_tasks(flags.out, inputs_of(flags));
  const DirectoryLock lock(flags.out);

  EvaluationSetup setup = set_up_policies(flags.evaluation);
  setup.refuse_times("sol tasks");
  const auto tokenizer = load_flagged_tokenizer(flags.evaluation.model, *setup.model);
  TaskPlan plan;
  plan.space = setup.space;
  const std::vector<std::string> names = chosen_policies(flags, setup);
  choose_modes(flags, !names.empty(), plan);
  std::vector<std::unique_ptr<Policy>> policies;
  // For one task: a sequence is a document, and a schedule for all of them depends on their number.
  const auto make_policies = [&](const Task& task) {
    policies.clear();
    plan.policies.clear();
    for (const std::string& name : names) {
      if (mixes_levels(name)) setup.require_space();
      PolicyParts parts = setup.policy_parts(flags.evaluation);
      parts.sequences = static_cast<int64_t>(task.documents.size());
      policies.push_back(make_named_policy(name, parts));
      plan.policies.push_back({name, policies.back().get(), follows_budgets(name)});
    }
  };
  if (plan.decode) make_policies(tasks.front());
  choose_budgets(flags, setup, plan);
  plan.identity = identity_of(flags, setup, *tokenizer);
  const ChatFormat chat = chosen_chat(flags, tasks, plan);

  TaskSettings settings;
  settings.run = setup.run;
  settings.controller = setup.controller_name;
  settings.scoring = {setup.protocol.sequence, setup.protocol.horizon, flags.evaluation.batch};
  TaskRunner runner(*setup.model, *tokenizer, settings.scoring, chat);
  const CellStore store(flags.out / "cells");
  std::vector<TaskCell> cells;
  for (size_t i = 0; i < tasks.size(); ++i) {
    const std::string doing = fmt::format("task {} of {}, {}", i + 1, tasks.size(), tasks[i].name);
    std::optional<WorkProgress> progress;
    int64_t before = 0, all = 0;
    const auto show = [&](int64_t done, int64_t total) {
      if (!progress || done < before || total != all) progress.emplace(doing);  // another pass
      before = done;
      all = total;
      progress->update(done, total);
    };
    if (plan.decode && i > 0) make_policies(tasks[i]);
    auto done = run_task(runner, tasks[i], plan, store, show, interrupt_token());
    progress.reset();
    const auto resumed = std::ranges::count(done, true, &TaskCell::resumed);
    if (resumed > 0)
      note("{}: {} of {} results are taken from an earlier run", tasks[i].name, resumed,
           done.size());
    std::ranges::move(done, std::back_inserter(cells));
    write_tasks(flags.out, cells, settings);
  }
  print("{}", tasks_text(cells));
  print("\nreport: {}\n", (flags.out / "report.html").string());
}

}  // namespace

void add_tasks_command(CLI::App& app) {
  auto flags = std::make_shared<TasksFlags>();
  CLI::App* command = app.add_subcommand(
      "tasks", "Downstream tasks as lm-evaluation-harness asks them, densely and under policies");
  flags->evaluation.batch = 64;
  add_policy_flags(*command, flags->evaluation);
  const auto names = [&](const char* option, std::vector<std::string>& value, const char* what) {
    return command->add_option(option, value, what)->delimiter(',')->type_name("NAMES");
  };
  names("--tasks", flags->tasks, "Which, for example arc_easy,piqa; see --list");
  command
      ->add_option("--data", flags->data,
                   "A directory with the tasks' files, or NAME=FILE for one of them; repeatable")
      ->type_name("DIR|NAME=FILE")
      ->allow_extra_args(false);
  names("--mode", flags->modes,
        "prefill (dense), decode (token by token, where policies act), or both (default: decode "
        "with a controller, levels or policies, else prefill)")
      ->check(CLI::IsMember({"prefill", "decode"}));
  names(
      "--policies", flags->policies,
      "In decode mode, beside dense: learned, fixed, random-matched, an action, ... The first that "
      "takes a budget is judged; others are asked for what it realised (default: learned,fixed "
      "with a controller, fixed with levels)");
  CLI::Option* net =
      command
          ->add_option("--budget", flags->net_keeps,
                       "Net keep-rates, turned into budgets by the controller's frontier (default: "
                       "0.6,0.7,0.8,0.9)")
          ->delimiter(',')
          ->check(number_in(0, 1))
          ->type_name("NET,...")
          ->needs(command->get_option("--controller"));
  const auto budgets = [&](const char* option, std::vector<double>& values, double most,
                           const char* what) {
    command->add_option(option, values, what)
        ->delimiter(',')
        ->check(number_in(0, most))
        ->type_name("NUMBER,...")
        ->excludes(net);
  };
  budgets("--keep", flags->keep, 1,
          "Mean share of cached tokens attended to. Of lists, the first values of --keep, --prune "
          "and --bits are one budget, the second another; a single value counts for all");
  budgets("--prune", flags->prune, 1, "Mean share of MLP input channels used");
  budgets("--bits", flags->bits, 16, "Mean bits of the MLP's output");
  command->add_option("--limit", flags->limit, "Only the first N documents of each task")
      ->check(in_range(1, std::numeric_limits<int64_t>::max()))
      ->type_name("N");
  command
      ->add_option("--num-fewshot", flags->shots, "Examples before each MMLU question (default: 0)")
      ->check(in_range(0, 5))
      ->type_name("N");
  command->add_flag("--plain", flags->plain,
                    "gsm8k_cot_llama as plain text, for models without a chat template");
  command->add_flag("--list", flags->list, "Print the tasks and the files they read");
  command
      ->add_option("-o,--out", flags->out,
                   "Directory of the results; what is finished there is not run again")
      ->type_name("DIR");
  command->callback([flags] { run_tasks_command(*flags); });
}

}  // namespace sol::app
