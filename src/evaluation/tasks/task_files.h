// Results of tasks as files and as text.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "engine/run_info.h"
#include "evaluation/tasks/experiment.h"

namespace sol {

// Everything a reader must know to repeat it, beside the figures.
struct TaskSettings {
  RunInfo run;
  std::string controller;  // its directory's name; may be empty
  ScoringOptions scoring;
  bool deterministic = false;
};

// One row per cell.
std::string tasks_csv(const std::vector<TaskCell>& cells, const TaskSettings& settings);
// One line per cell and document.
std::string tasks_jsonl(const std::vector<TaskCell>& cells, const TaskSettings& settings);
// One row per mean over tasks (task_means.h).
std::string means_csv(const std::vector<TaskCell>& cells, const TaskSettings& settings);
// For the terminal: one line per cell and per mean, then what follows from it.
std::string tasks_text(const std::vector<TaskCell>& cells);

// How a judged policy compares with its baselines, one sentence each; what is at chance; plain
// text.
std::vector<std::string> task_findings(const std::vector<TaskCell>& cells);

// "mmlu_anatomy (5 shots)".
std::string task_text(const TaskCell& cell);

// "0.700" or "keep 0.5 prune 0.7 bits 9"; empty where none was asked for.
std::string requested_text(const TaskCell& cell);

// The whole as one self-contained page of HTML.
std::string tasks_report(const std::vector<TaskCell>& cells, const TaskSettings& settings);

// tasks.csv, tasks.jsonl, means.csv and report.html in `dir`; none replaces an older one before all
// are complete. Throws Error naming the file that could not be written.
void write_tasks(const std::filesystem::path& dir, const std::vector<TaskCell>& cells,
                 const TaskSettings& settings);

// Throws Error, before the tasks, where write_tasks() would write over one of `inputs` or over
// anything but older files of its own (base/output_file.h).
void ensure_writable_tasks(const std::filesystem::path& dir,
                           const std::vector<std::filesystem::path>& inputs);

}  // namespace sol
