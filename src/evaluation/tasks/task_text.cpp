// Results of tasks in words and as a table for the terminal.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "evaluation/tasks/task_files.h"
#include "evaluation/tasks/task_means.h"

namespace sol {
namespace {

std::string with_error(const Metric& metric) {
  if (!metric.standard_error) return fmt::format("{:.4f}", metric.value);
  return fmt::format("{:.4f} ± {:.4f}", metric.value, *metric.standard_error);
}

const TaskCell* judged_of(const std::vector<TaskCell>& cells, const TaskCell& baseline) {
  for (const TaskCell& cell : cells)
    if (cell.task == baseline.task && cell.point == baseline.point && cell.budgeted &&
        !cell.at_realised)
      return &cell;
  return nullptr;
}

// Where a judged policy is compared: what it realised, if anything.
std::string place_of(const TaskCell& judged) {
  if (judged.spent.effective_steps > 0)
    return fmt::format("{} at net {:.3f}", judged.task, judged.net_keep);
  return fmt::format("{} (requested {}; no step counts)", judged.task, requested_text(judged));
}

std::string compared(const TaskCell& judged, const TaskCell& baseline) {
  const std::string at = fmt::format("{}: {}", place_of(judged), judged.policy);
  if (judged.kind == TaskKind::rolling) {
    const double one = find_metric(judged.metrics, "bits_per_byte")->value;
    const double other = find_metric(baseline.metrics, "bits_per_byte")->value;
    return fmt::format("{} {:.4f} bits per byte, {} {:.4f} ({:+.4f})", at, one, baseline.policy,
                       other, one - other);
  }
  const PairedAccuracy paired = paired_accuracy(judged.kind, judged.documents, baseline.documents);
  // An error of 0 is one document, or all alike: no spread to judge by.
  const bool clear =
      paired.standard_error > 0 && std::abs(paired.difference) > 2 * paired.standard_error;
  return fmt::format("{} {:.4f}, {} {:.4f}: difference {:+.4f} ± {:.4f}, {}", at,
                     judged.main_metric().value, baseline.policy, baseline.main_metric().value,
                     paired.difference, paired.standard_error,
                     clear ? "more than 2 standard errors" : "not distinguishable");
}

std::string metrics_text(const TaskCell& cell) {
  std::string text;
  for (const Metric& metric : cell.metrics) {
    if (metric.name == "acc_bytes") continue;
    text += fmt::format("{}{} {}", text.empty() ? "" : "  ", metric.name, with_error(metric));
  }
  if (cell.chance)
    text += fmt::format("  chance {:.4f}{}", *cell.chance,
                        cell.main_metric().at_chance ? "  at chance" : "");
  return text;
}

std::string row_of(const TaskCell& cell, size_t documents, int requested_width) {
  return fmt::format("{:<34} {:<8} {:<15} {:>{}} {:>6} {:>5}  {}\n", task_text(cell),
                     to_string(cell.mode), cell.policy + (cell.at_realised ? " *" : ""),
                     cell.budgeted ? requested_text(cell) : "-", requested_width,
                     cell.spent.effective_steps > 0 ? fmt::format("{:.3f}", cell.net_keep) : "-",
                     documents, metrics_text(cell));
}

}  // namespace

std::string task_text(const TaskCell& cell) {
  return cell.shots > 0 ? fmt::format("{} ({} shots)", cell.task, cell.shots) : cell.task;
}

std::string requested_text(const TaskCell& cell) {
  if (!cell.budgeted) return {};
  if (cell.requested_net) return fmt::format("{:.3f}", *cell.requested_net);
  return fmt::format("keep {:.3g} prune {:.3g} bits {:.3g}", cell.requested.kappa,
                     cell.requested.rho, 16 * cell.requested.eta);
}

std::vector<std::string> task_findings(const std::vector<TaskCell>& cells) {
  std::vector<std::string> findings;
  std::string task;
  for (const TaskCell& cell : cells) {
    if (cell.task != task) {
      task = cell.task;
      // The dense model decides whether the task says anything about this model.
      if (cell.chance && cell.main_metric().at_chance)
        findings.push_back(fmt::format(
            "{}: the dense model's accuracy ({:.4f}) is at chance ({:.4f}); nothing follows from "
            "this task's figures",
            task, cell.main_metric().value, *cell.chance));
    }
    if (!cell.at_realised) continue;
    const TaskCell* judged = judged_of(cells, cell);
    if (!judged) continue;
    if (judged->chance && judged->main_metric().at_chance && cell.main_metric().at_chance)
      findings.push_back(fmt::format("{}: {} and {} are both at chance; nothing follows",
                                     place_of(*judged), judged->policy, cell.policy));
    else
      findings.push_back(compared(*judged, cell));
  }
  return findings;
}

std::string tasks_text(const std::vector<TaskCell>& cells) {
  size_t width = 9;
  for (const TaskCell& cell : cells) width = std::max(width, requested_text(cell).size());
  const auto requested_width = static_cast<int>(width);
  std::string text = fmt::format("{:<34} {:<8} {:<15} {:>{}} {:>6} {:>5}  {}\n", "task", "mode",
                                 "policy", "requested", requested_width, "net", "docs", "result");
  for (const TaskCell& cell : cells) text += row_of(cell, cell.documents.size(), requested_width);
  for (const TaskMean& mean : task_means(cells))
    text += row_of(mean.cell, mean.documents, requested_width);
  for (const TaskCell& cell : cells)
    if (cell.at_realised) {
      text += "* asked for the averages that the judged policy realised\n";
      break;
    }
  const std::vector<std::string> findings = task_findings(cells);
  if (!findings.empty()) text += "\n";
  for (const std::string& finding : findings) text += finding + "\n";
  return text;
}

}  // namespace sol
