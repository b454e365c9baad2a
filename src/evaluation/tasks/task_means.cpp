#include "evaluation/tasks/task_means.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <string_view>

#include "policy/axis.h"

namespace sol {
namespace {

constexpr std::string_view all_tasks = "tasks";
constexpr std::string_view mmlu = "mmlu", mmlu_continuation = "mmlu_continuation";

bool is_member(const TaskCell& cell, std::string_view name) {
  if (name == all_tasks) return true;
  if (!cell.task.starts_with("mmlu_")) return false;
  return cell.task.ends_with("_continuation") == (name == mmlu_continuation);
}

// Multiple-choice cells of each mode, policy and requested budget, in their order.
std::vector<std::vector<const TaskCell*>> by_request(const std::vector<TaskCell>& cells) {
  std::vector<std::vector<const TaskCell*>> requests;
  for (const TaskCell& cell : cells) {
    if (cell.kind != TaskKind::choices) continue;
    const auto found = std::ranges::find_if(requests, [&](const auto& request) {
      const TaskCell& first = *request.front();
      return first.mode == cell.mode && first.policy == cell.policy && first.point == cell.point &&
             first.at_realised == cell.at_realised;
    });
    if (found != requests.end())
      found->push_back(&cell);
    else
      requests.push_back({&cell});
  }
  return requests;
}

// Their sum is 1.
std::vector<double> weights_of(const TaskMean& mean) {
  std::vector<double> weights;
  for (const TaskCell* cell : mean.of)
    weights.push_back(mean.by_questions ? static_cast<double>(cell->documents.size()) /
                                              static_cast<double>(mean.documents)
                                        : 1 / static_cast<double>(mean.of.size()));
  return weights;
}

// As if tasks were independent; the two forms of an MMLU subject share their questions.
void add_accuracy(TaskMean& mean, const std::vector<double>& weights) {
  Metric accuracy{"acc", 0, {}, false};
  double chance = 0, variance = 0, of_guessing = 0;
  for (size_t i = 0; i < weights.size(); ++i) {
    const TaskCell& cell = *mean.of[i];
    const Metric& one = cell.main_metric();
    const double guessed = *cell.chance;
    accuracy.value += weights[i] * one.value;
    chance += weights[i] * guessed;
    variance += std::pow(weights[i] * *one.standard_error, 2);
    of_guessing += weights[i] * weights[i] * guessed * (1 - guessed) /
                   static_cast<double>(cell.documents.size());
  }
  accuracy.standard_error = std::sqrt(variance);
  // As of one task: the measured error may be 0 by luck alone.
  accuracy.at_chance =
      std::abs(accuracy.value - chance) <= 2 * std::sqrt(std::max(variance, of_guessing));
  mean.cell.chance = chance;
  mean.cell.metrics = {accuracy};
}

void add_spent(TaskMean& mean, const std::vector<double>& weights) {
  const auto counts = [](const TaskCell* cell) { return cell->spent.effective_steps > 0; };
  if (!std::ranges::all_of(mean.of, counts)) return;
  StepTotals& spent = mean.cell.spent;
  spent.realised = {0, 0, 0};
  mean.cell.net_keep = 0;
  for (size_t i = 0; i < weights.size(); ++i) {
    const TaskCell& cell = *mean.of[i];
    spent.effective_steps += cell.spent.effective_steps;
    for (const Axis axis : all_axes)
      value(spent.realised, axis) +=
          static_cast<float>(weights[i] * static_cast<double>(value(cell.spent.realised, axis)));
    mean.cell.net_keep += weights[i] * cell.net_keep;
  }
}

TaskMean mean_over(std::string_view name, const std::vector<const TaskCell*>& of) {
  TaskMean mean;
  mean.name = name;
  mean.of = of;
  mean.by_questions = name != all_tasks;
  for (const TaskCell* cell : of) mean.documents += cell->documents.size();
  const TaskCell& first = *of.front();
  TaskCell& shown = mean.cell;
  shown.task = mean.by_questions ? fmt::format("{} ({} subjects)", name, of.size())
                                 : fmt::format("mean of {} tasks", of.size());
  shown.mode = first.mode;
  shown.policy = first.policy;
  shown.budgeted = first.budgeted;
  shown.point = first.point;
  shown.at_realised = first.at_realised;
  shown.requested = first.requested;
  shown.requested_net = first.requested_net;
  const std::vector<double> weights = weights_of(mean);
  add_accuracy(mean, weights);
  add_spent(mean, weights);
  return mean;
}

}  // namespace

std::vector<TaskMean> task_means(const std::vector<TaskCell>& cells) {
  const auto requests = by_request(cells);
  std::vector<TaskMean> means;
  for (const std::string_view name : {all_tasks, mmlu, mmlu_continuation})
    for (const auto& request : requests) {
      std::vector<const TaskCell*> members;
      std::ranges::copy_if(request, std::back_inserter(members),
                           [&](const TaskCell* cell) { return is_member(*cell, name); });
      if (members.size() >= 2) means.push_back(mean_over(name, members));
    }
  return means;
}

}  // namespace sol
