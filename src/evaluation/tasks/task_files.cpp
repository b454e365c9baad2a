#include "evaluation/tasks/task_files.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <memory>
#include <utility>

#include "base/file_io.h"
#include "base/output_file.h"
#include "evaluation/report_page.h"
#include "evaluation/tasks/task_means.h"
#include "policy/action_json.h"

namespace sol {
namespace {

constexpr const char* metric_columns[] = {"acc",
                                          "acc_norm",
                                          "acc_bytes",
                                          "exact_match_strict",
                                          "exact_match_flexible",
                                          "word_perplexity",
                                          "byte_perplexity",
                                          "bits_per_byte"};

std::string number_or_nothing(std::optional<double> value) {
  return value ? fmt::format("{}", *value) : "";
}

std::string budget_columns(const Budget& budget, bool given) {
  return given ? fmt::format("{},{},{}", budget.kappa, budget.rho, budget.eta) : ",,";
}

constexpr const char* run_column_names =
    "controller,model,model_fingerprint,commit,isa,threads,seed,device,precision,weights,"
    "outside_paper,horizon,page_size,sinks,window,force_sinks";

// What every row of a run has alike.
std::string run_columns(const TaskSettings& settings) {
  const RunInfo& run = settings.run;
  const SequenceOptions& sequence = settings.scoring.sequence;
  return fmt::format("{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}", settings.controller,
                     run.model, run.model_fingerprint, run.commit, run.isa, run.threads, run.seed,
                     run.device, run.precision, run.weights, fmt::join(run.outside_paper, ";"),
                     settings.scoring.horizon, sequence.page_size, sequence.sinks, sequence.window,
                     sequence.force_sinks ? 1 : 0);
}

Json run_json(const TaskSettings& settings) {
  const SequenceOptions& sequence = settings.scoring.sequence;
  Json json = to_json(settings.run);
  for (const char* long_one : {"version", "command", "cpu"}) json.erase(long_one);
  json.update({{"horizon", settings.scoring.horizon},
               {"page_size", sequence.page_size},
               {"sinks", sequence.sinks},
               {"window", sequence.window},
               {"force_sinks", sequence.force_sinks}});
  return json;
}

std::string point_columns(const TaskCell& cell) {
  return fmt::format("{},{},{}", cell.at_realised ? "realised" : "",
                     cell.point >= 0 ? std::to_string(cell.point) : "",
                     number_or_nothing(cell.requested_net));
}

std::string net_column(const TaskCell& cell) {
  return cell.spent.effective_steps > 0 ? fmt::format("{}", cell.net_keep) : "";
}

double attended(const StepTotals& spent) {
  return spent.attended / static_cast<double>(spent.steps);
}

Json cell_json(const TaskCell& cell, const TaskSettings& settings) {
  Json json = {{"task", cell.task},
               {"shots", cell.shots},
               {"chat", cell.chat},
               {"mode", to_string(cell.mode)},
               {"policy", cell.policy},
               {"baseline_at", cell.at_realised ? Json("realised") : Json(nullptr)}};
  if (cell.budgeted) {
    json["point"] = cell.point;
    if (cell.requested_net) json["requested_net"] = *cell.requested_net;
    json["requested"] = budget_to_json(cell.requested);
    json["asked"] = budget_to_json(cell.asked);
  }
  json["data"] = cell.data.name;
  json["controller"] = settings.controller;
  return json;
}

}  // namespace

std::string tasks_csv(const std::vector<TaskCell>& cells, const TaskSettings& settings) {
  std::string text =
      "task,shots,chat,mode,policy,baseline_at,point,requested_net,requested_kappa,requested_rho,"
      "requested_eta,asked_kappa,asked_rho,asked_eta,realised_kappa,realised_rho,realised_eta,"
      "net_keep,attended,steps,effective_steps,documents,chance,at_chance";
  for (const char* name : metric_columns) text += fmt::format(",{0},{0}_stderr", name);
  text += fmt::format(",seconds,data,data_fingerprint,{}\n", run_column_names);
  for (const TaskCell& cell : cells) {
    const StepTotals& spent = cell.spent;
    text += fmt::format(
        "{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}", cell.task, cell.shots, cell.chat ? 1 : 0,
        to_string(cell.mode), cell.policy, point_columns(cell),
        budget_columns(cell.requested, cell.budgeted), budget_columns(cell.asked, cell.budgeted),
        budget_columns(spent.realised, spent.effective_steps > 0), net_column(cell),
        spent.steps > 0 ? fmt::format("{}", attended(spent)) : "", spent.steps,
        spent.effective_steps, cell.documents.size(), number_or_nothing(cell.chance),
        cell.chance ? (cell.main_metric().at_chance ? "1" : "0") : "");
    for (const char* name : metric_columns) {
      const Metric* metric = find_metric(cell.metrics, name);
      text += fmt::format(",{},{}", metric ? fmt::format("{}", metric->value) : "",
                          metric ? number_or_nothing(metric->standard_error) : "");
    }
    text += fmt::format(",{},{},{},{}\n", cell.seconds, cell.data.name, cell.data.fingerprint,
                        run_columns(settings));
  }
  return text;
}

std::string means_csv(const std::vector<TaskCell>& cells, const TaskSettings& settings) {
  std::string text = fmt::format(
      "mean,tasks,documents,mode,policy,baseline_at,point,requested_net,requested_kappa,"
      "requested_rho,requested_eta,realised_kappa,realised_rho,realised_eta,net_keep,acc,"
      "acc_stderr,chance,at_chance,{}\n",
      run_column_names);
  for (const TaskMean& mean : task_means(cells)) {
    const TaskCell& cell = mean.cell;
    const Metric& accuracy = cell.main_metric();
    std::vector<std::string> tasks;
    for (const TaskCell* one : mean.of) tasks.push_back(task_text(*one));
    text += fmt::format("{},{},{},{},{},{},{},{},{},{},{},{},{},{}\n", mean.name,
                        fmt::join(tasks, ";"), mean.documents, to_string(cell.mode), cell.policy,
                        point_columns(cell), budget_columns(cell.requested, cell.budgeted),
                        budget_columns(cell.spent.realised, cell.spent.effective_steps > 0),
                        net_column(cell), accuracy.value,
                        number_or_nothing(accuracy.standard_error), number_or_nothing(cell.chance),
                        accuracy.at_chance ? 1 : 0, run_columns(settings));
  }
  return text;
}

std::string tasks_jsonl(const std::vector<TaskCell>& cells, const TaskSettings& settings) {
  const Json source = run_json(settings);
  std::string text;
  for (const TaskCell& cell : cells) {
    Json common = cell_json(cell, settings);
    common.update(source);
    for (const DocumentResult& document : cell.documents) {
      Json line = common;
      line.update(to_json(cell.kind, document));
      text += to_text(line) + "\n";
    }
  }
  return text;
}

void write_tasks(const std::filesystem::path& dir, const std::vector<TaskCell>& cells,
                 const TaskSettings& settings) {
  const std::pair<const char*, std::string> contents[] = {
      {"tasks.csv", tasks_csv(cells, settings)},
      {"tasks.jsonl", tasks_jsonl(cells, settings)},
      {"means.csv", means_csv(cells, settings)},
      {"report.html", tasks_report(cells, settings)}};
  std::vector<std::unique_ptr<AtomicFile>> files;
  for (const auto& [name, content] : contents) {
    files.push_back(std::make_unique<AtomicFile>(dir / name));
    files.back()->write(content);
  }
  for (const auto& file : files) file->flush();
  for (const auto& file : files) file->commit();
}

void ensure_writable_tasks(const std::filesystem::path& dir,
                           const std::vector<std::filesystem::path>& inputs) {
  const std::pair<const char*, std::string> beginnings[] = {
      {"tasks.csv", "task,shots,chat,"},
      {"tasks.jsonl", "{\"task\":"},
      {"means.csv", "mean,tasks,"},
      {"report.html", html_page_beginning("Tasks: ")}};
  for (const auto& [name, beginning] : beginnings)
    ensure_writable_output(dir / name, {"a file of `sol tasks`", beginning}, inputs);
}

}  // namespace sol
