// A task under policies and budgets: which cells there are, which of them are there already, and
// in which order the rest is run.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "evaluation/tasks/task_runner.h"

namespace sol {

// One task, mode, policy and budget.
struct TaskCell {
  std::string task;
  TaskKind kind = TaskKind::choices;
  bool length_normalised = false;
  int shots = 0;
  bool chat = false;  // prompts went through the model's chat template
  DataFile data;
  ScoringMode mode = ScoringMode::prefill;
  std::string policy;
  bool budgeted = false;     // the policy was asked for a budget
  int point = -1;            // which of the requested budgets this belongs to; -1: none
  bool at_realised = false;  // a baseline, asked for what the judged policy realised at this point
  Budget requested, asked;   // of the point; of this policy
  std::optional<double> requested_net;  // the net keep-rate that `requested` stands for

  std::vector<DocumentResult> documents;
  double seconds = 0;    // of the pass that this was part of, divided by its cells
  bool resumed = false;  // taken from an earlier run of the same

  // Of `documents`.
  StepTotals spent;
  double net_keep = 1;  // of the realised averages, over the axes in use
  std::optional<double> chance;
  std::vector<Metric> metrics;

  const Metric& main_metric() const { return metrics.front(); }
};

// A policy by the name that results show.
struct TaskPolicy {
  std::string name;
  const Policy* policy = nullptr;
  bool budgeted = false;  // takes a budget; others (dense, one action) have one cell
};

struct TaskPlan {
  bool prefill = false, decode = false;
  std::vector<TaskPolicy> policies;  // beside dense; the first budgeted one is judged, later ones
                                     // are its baselines
  std::vector<Budget> budgets;       // requested of the judged policy
  std::vector<double> net_keeps;     // what they stand for; empty: they were given one by one
  std::optional<ActionSpace> space;  // whose axes the net keep-rate counts; else each policy's own
  bool chat = false;
  std::string chat_template;  // its fingerprint, for cells whose prompts go through it
  // What else decides a result, beside the task and the cell itself: model, options, controller.
  Json identity;
};

// Cells, one file each, found again by what decides their results; those of interrupted passes hold
// their first documents.
class CellStore {
 public:
  explicit CellStore(std::filesystem::path dir) : dir_(std::move(dir)) {}

  // Fill the documents of a cell that was finished, or begun, under the same identity; false when
  // there is none. Throw Error for a file that is damaged.
  bool load(const Json& identity, TaskCell& cell) const;
  bool load_part(const Json& identity, TaskCell& cell) const;
  // Throw Error when it cannot be written. A finished cell replaces its part.
  void save(const Json& identity, const TaskCell& cell) const;
  void save_part(const Json& identity, const TaskCell& cell) const;

 private:
  std::filesystem::path path(const Json& identity, const char* ending) const;
  std::filesystem::path dir_;
};

// Two passes in decode mode: dense, policies that take no budget and the judged one at every
// budget, then its baselines at the averages that it realised. A pass is saved when it is complete;
// what is done of it every minute, and when it is interrupted.
// A task that generates has no prefill mode; dense decoding stands in for it. Throws what the
// runner and the store throw.
std::vector<TaskCell> run_task(TaskRunner& runner, const Task& task, const TaskPlan& plan,
                               const CellStore& store, const ScoringProgress& progress = {},
                               std::stop_token stop = {});

// What identifies a cell of this task, in addition to the plan's identity.
Json cell_identity(const TaskPlan& plan, const Task& task, const TaskCell& cell);

}  // namespace sol
