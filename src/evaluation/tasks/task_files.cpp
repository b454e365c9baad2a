#include "evaluation/tasks/task_files.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

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

// What every line of a run has alike.
Json run_json(const TaskSettings& settings) {
  Json json = {{"controller", settings.controller}};
  json.update(to_json(settings.run));
  for (const char* long_one : {"version", "command", "cpu"}) json.erase(long_one);
  json["horizon"] = settings.scoring.horizon;
  json.update(to_json(settings.scoring.sequence));
  return json;
}

// The same as columns, in their order.
constexpr const char* run_fields[] = {"controller", "model",         "model_fingerprint",
                                      "commit",     "isa",           "threads",
                                      "seed",       "device",        "precision",
                                      "weights",    "outside_paper", "horizon",
                                      "page_size",  "sinks",         "window",
                                      "force_sinks"};

std::string cell_text(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_boolean()) return value.get<bool>() ? "1" : "0";
  if (!value.is_array()) return to_text(value);
  std::vector<std::string> parts;
  for (const Json& part : value) parts.push_back(cell_text(part));
  return fmt::format("{}", fmt::join(parts, ";"));
}

std::string run_columns(const TaskSettings& settings) {
  const Json run = run_json(settings);
  std::vector<std::string> texts;
  for (const char* field : run_fields) texts.push_back(cell_text(run.at(field)));
  return fmt::format("{}", fmt::join(texts, ","));
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

Json cell_json(const TaskCell& cell) {
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
  return json;
}

}  // namespace

std::string tasks_csv(const std::vector<TaskCell>& cells, const TaskSettings& settings) {
  std::string text =
      "task,shots,chat,mode,policy,baseline_at,point,requested_net,requested_kappa,requested_rho,"
      "requested_eta,asked_kappa,asked_rho,asked_eta,realised_kappa,realised_rho,realised_eta,"
      "net_keep,attended,steps,effective_steps,documents,chance,at_chance";
  for (const char* name : metric_columns) text += fmt::format(",{0},{0}_stderr", name);
  text += fmt::format(",seconds,data,data_fingerprint,{}\n", fmt::join(run_fields, ","));
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
      fmt::join(run_fields, ","));
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
    Json common = cell_json(cell);
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
  write_files_together(dir, contents);
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
