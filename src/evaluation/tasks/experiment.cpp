#include "evaluation/tasks/experiment.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/fail.h"
#include "base/stopwatch.h"
#include "policy/action_json.h"
#include "policy/policies.h"

namespace sol {
namespace {

class TaskExperiment {
 public:
  TaskExperiment(TaskRunner& runner, const Task& task, const TaskPlan& plan, const CellStore& store,
                 const ScoringProgress& progress, std::stop_token stop)
      : runner_(runner),
        task_(task),
        plan_(plan),
        store_(store),
        progress_(progress),
        stop_(std::move(stop)),
        dense_(make_constant_policy(Action{})) {}

  std::vector<TaskCell> run() {
    const bool generates = task_.kind == TaskKind::generation;
    if (plan_.prefill && !generates) run_prefill();
    if (plan_.decode || (generates && plan_.prefill)) run_decode();
    return std::move(cells_);
  }

 private:
  TaskCell make_cell(ScoringMode mode, const std::string& policy) const {
    TaskCell cell;
    cell.task = task_.name;
    cell.kind = task_.kind;
    cell.length_normalised = task_.length_normalised;
    cell.shots = task_.shots;
    cell.chat = plan_.chat && task_.kind == TaskKind::generation;
    cell.data = task_.data;
    cell.mode = mode;
    cell.policy = policy;
    return cell;
  }

  void complete(TaskCell& cell, const ActionSpace& own_space) const {
    std::vector<StepTotals> spent;
    for (const DocumentResult& document : cell.documents) spent.push_back(document.spent);
    cell.spent = sum_of(spent);
    cell.net_keep = (plan_.space ? *plan_.space : own_space).net_keep_rate(cell.spent.realised);
    cell.chance = chance_level(cell.kind, cell.documents);
    cell.metrics = metrics(cell.kind, cell.length_normalised, cell.documents);
  }

  void run_prefill() {
    TaskCell cell = make_cell(ScoringMode::prefill, "dense");
    const Json identity = cell_identity(plan_, task_, cell);
    if (!store_.load(identity, cell)) {
      store_.load_part(identity, cell);
      run_cells({{&cell, identity}},
                [&](TaskPass& pass) { runner_.prefill(task_, pass, progress_, stop_); });
    }
    complete(cell, dense_->space());
    cells_.push_back(std::move(cell));
  }

  struct NamedCell {
    TaskCell* cell;
    Json identity;
  };

  // Cells of one pass, of which as many documents are there already. `run` adds the others.
  template <typename Run>
  void run_cells(const std::vector<NamedCell>& cells, const Run& run) {
    constexpr double seconds_between_saves = 60;
    const Stopwatch watch;
    double saved = 0, counted = 0;
    TaskPass pass(cells.size());
    for (size_t i = 0; i < cells.size(); ++i) pass.results[i] = cells[i].cell->documents;
    const auto take_results = [&] {
      const double seconds = watch.seconds();
      for (size_t i = 0; i < cells.size(); ++i) {
        cells[i].cell->documents = pass.results[i];
        cells[i].cell->seconds += (seconds - counted) / static_cast<double>(cells.size());
      }
      counted = seconds;
    };
    const auto save_parts = [&] {
      if (pass.results[0].empty()) return;
      take_results();
      for (const NamedCell& one : cells) store_.save_part(one.identity, *one.cell);
      saved = watch.seconds();
    };
    pass.keep = [&] {
      if (watch.seconds() >= saved + seconds_between_saves) save_parts();
    };
    try {
      run(pass);
    } catch (const Cancelled&) {
      save_parts();
      throw;
    }
    take_results();
    for (const NamedCell& one : cells) store_.save(one.identity, *one.cell);
  }

  void run_pass(std::vector<TaskCell>& cells, const std::vector<const Policy*>& policies) {
    std::vector<Json> identities;
    std::vector<std::pair<size_t, size_t>> twins;  // a cell, and an earlier one that is the same
    // Missing cells by how many of their documents are there.
    std::map<size_t, std::vector<size_t>> missing;
    for (size_t i = 0; i < cells.size(); ++i) {
      identities.push_back(cell_identity(plan_, task_, cells[i]));
      if (store_.load(identities[i], cells[i])) continue;
      // Baselines may be asked for the same twice, where the judged policy did the same.
      const auto same = std::find(identities.begin(), identities.end() - 1, identities[i]);
      if (same != identities.end() - 1) {
        twins.emplace_back(i, same - identities.begin());
        continue;
      }
      store_.load_part(identities[i], cells[i]);
      missing[cells[i].documents.size()].push_back(i);
    }
    for (const auto& [documents, these] : missing) {
      // Scored arms share their contexts' dense passes; written answers do not and take hours, so
      // one arm of them is done after the other.
      const size_t together = task_.kind == TaskKind::generation ? 1 : these.size();
      for (size_t first = 0; first < these.size(); first += together) {
        std::vector<NamedCell> of_pass;
        std::vector<Arm> arms;
        for (const size_t i : std::span(these).subspan(first, together)) {
          of_pass.push_back({&cells[i], identities[i]});
          arms.push_back({policies[i], cells[i].asked});
        }
        run_cells(of_pass,
                  [&](TaskPass& pass) { runner_.decode(task_, arms, pass, progress_, stop_); });
      }
    }
    for (const auto& [twin, original] : twins) {
      cells[twin].documents = cells[original].documents;
      cells[twin].seconds = cells[original].seconds;
    }
    for (size_t i = 0; i < cells.size(); ++i) complete(cells[i], policies[i]->space());
  }

  TaskCell budgeted_cell(const TaskPolicy& policy, size_t point, const Budget& asked) const {
    TaskCell cell = make_cell(ScoringMode::decode, policy.name);
    cell.budgeted = true;
    cell.point = static_cast<int>(point);
    cell.requested = policy.policy->space().clamp_off_axes(plan_.budgets[point]);
    cell.asked = asked;
    if (!plan_.net_keeps.empty()) cell.requested_net = plan_.net_keeps[point];
    return cell;
  }

  void run_decode() {
    std::vector<TaskCell> first{make_cell(ScoringMode::decode, "dense")};
    std::vector<const Policy*> policies{dense_.get()};
    const auto judged = std::ranges::find(plan_.policies, true, &TaskPolicy::budgeted);
    if (plan_.decode) {
      for (const TaskPolicy& policy : plan_.policies) {
        if (policy.budgeted || policy.name == "dense") continue;
        first.push_back(make_cell(ScoringMode::decode, policy.name));
        policies.push_back(policy.policy);
      }
      if (judged != plan_.policies.end())
        for (size_t point = 0; point < plan_.budgets.size(); ++point) {
          const Budget asked = judged->policy->space().clamp_off_axes(plan_.budgets[point]);
          first.push_back(budgeted_cell(*judged, point, asked));
          policies.push_back(judged->policy);
        }
    }
    run_pass(first, policies);

    std::vector<TaskCell> second;
    policies.clear();
    if (plan_.decode && judged != plan_.policies.end())
      for (auto baseline = judged + 1; baseline != plan_.policies.end(); ++baseline) {
        if (!baseline->budgeted) continue;
        for (const TaskCell& cell : first) {
          if (cell.point < 0) continue;
          second.push_back(
              budgeted_cell(*baseline, static_cast<size_t>(cell.point), cell.spent.realised));
          second.back().at_realised = true;
          policies.push_back(baseline->policy);
        }
      }
    if (!second.empty()) run_pass(second, policies);
    for (auto* cells : {&first, &second}) std::ranges::move(*cells, std::back_inserter(cells_));
  }

  TaskRunner& runner_;
  const Task& task_;
  const TaskPlan& plan_;
  const CellStore& store_;
  const ScoringProgress& progress_;
  std::stop_token stop_;
  std::unique_ptr<Policy> dense_;
  std::vector<TaskCell> cells_;
};

}  // namespace

Json cell_identity(const TaskPlan& plan, const Task& task, const TaskCell& cell) {
  Json json = {{"task", cell.task},
               {"shots", cell.shots},
               {"data", task.data.fingerprint},
               {"documents", task.documents.size()},
               {"chat", cell.chat},
               {"mode", to_string(cell.mode)},
               {"policy", cell.policy},
               {"asked", cell.budgeted ? budget_to_json(cell.asked) : Json(nullptr)}};
  if (cell.chat) json["chat_template"] = plan.chat_template;
  json.update(plan.identity);
  return json;
}

std::vector<TaskCell> run_task(TaskRunner& runner, const Task& task, const TaskPlan& plan,
                               const CellStore& store, const ScoringProgress& progress,
                               std::stop_token stop) {
  if (task.documents.empty()) fail("{}: there is no document", task.name);
  if (!plan.net_keeps.empty() && plan.net_keeps.size() != plan.budgets.size())
    fail("{} net keep-rates were given for {} budgets", plan.net_keeps.size(), plan.budgets.size());
  return TaskExperiment(runner, task, plan, store, progress, std::move(stop)).run();
}

}  // namespace sol
