// Means of accuracies over several tasks, as the paper's figure of downstream tasks shows them.
#pragma once

#include <string>
#include <vector>

#include "evaluation/tasks/experiment.h"

namespace sol {

// Over multiple-choice tasks that were asked in one mode, under one policy, for one requested
// budget.
struct TaskMean {
  std::string name;                 // "tasks", or the harness's group: mmlu, mmlu_continuation
  std::vector<const TaskCell*> of;  // one per task
  bool by_questions = false;        // weighted by their numbers; else each task counts alike
  size_t documents = 0;             // of all of them
  // What is shown: acc as the only metric, chance, and realised averages with their net keep-rate
  // (none where a task has no step that counts). Without documents of its own.
  TaskCell cell;
};

// Over all multiple-choice tasks, then over MMLU's subjects of each form; none over fewer than two
// tasks. They point into `cells`.
std::vector<TaskMean> task_means(const std::vector<TaskCell>& cells);

}  // namespace sol
