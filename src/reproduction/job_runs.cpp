#include "reproduction/job_runs.h"

#include <algorithm>

#include "base/fail.h"
#include "evaluation/behaviour.h"
#include "evaluation/budget_grid.h"
#include "evaluation/free_generation.h"
#include "evaluation/named_policy.h"
#include "evaluation/sweep_summary.h"
#include "policy/policies.h"
#include "reproduction/experiment_json.h"
#include "reproduction/jobs.h"
#include "reproduction/training_log.h"

namespace sol {
namespace {

constexpr int paper_horizon = 16;

// Random schedules of different experiments must not share draws.
enum class Draws : uint32_t { landscape = 0, search = 1u << 20, single = 1u << 22 };

int64_t block_count(const BlockEvaluator& evaluator) {
  return static_cast<int64_t>(evaluator.indices().size());
}

std::vector<Budget> grid(const Controller& controller, int at_least,
                         GridRequest::Kind kind = GridRequest::Kind::automatic) {
  GridRequest request;
  request.kind = kind;
  request.at_least = at_least;
  return make_budget_grid(request, controller.space(), controller.settings().ranges);
}

// `count` of a list, evenly spread, its ends included.
template <typename T>
std::vector<T> spread(const std::vector<T>& all, int count) {
  if (static_cast<int>(all.size()) <= count) return all;
  std::vector<T> chosen;
  for (int i = 0; i < count; ++i) {
    const double at =
        count == 1 ? 0.5 * static_cast<double>(all.size() - 1)
                   : static_cast<double>(i) * static_cast<double>(all.size() - 1) / (count - 1);
    chosen.push_back(all[static_cast<size_t>(at + 0.5)]);
  }
  return chosen;
}

Sweep finished_sweep(const Laboratory& lab, const std::string& job) {
  const auto found = lab.results().find(job);
  if (!found) fail("{} has not finished", job);
  return sweep_from_json(*found, lab.results().where(job));
}

// Budgets on the frontier over the study's validation text: operating points are chosen on other
// text than they are judged on, also for a controller that brings a frontier of its own.
std::vector<Budget> frontier_budgets(const Laboratory& lab, const Where& at, int count) {
  const std::vector<FrontierPoint> frontier =
      validation_frontier(finished_sweep(lab, frontier_job(at.family->name, at.controller)));
  // The ends are where every policy must do the same.
  const size_t inner = frontier.size() > 4 ? 1 : 0;
  std::vector<Budget> budgets;
  for (size_t i = inner; i + inner < frontier.size(); ++i) budgets.push_back(frontier[i].budget);
  return spread(budgets, count);
}

Sweep sweep_over(Laboratory& lab, const Controller& controller, BlockEvaluator& evaluator,
                 const std::vector<std::string>& baselines, const std::vector<Budget>& budgets,
                 bool requested, const SweepProgress& progress) {
  const auto learned = lab.policy("learned", controller, block_count(evaluator));
  SweepRequest request;
  request.policy = learned.get();
  const auto owned = add_baselines(request, baselines, [&](const std::string& name) {
    return lab.policy(name, controller, block_count(evaluator));
  });
  request.budgets = budgets;
  for (const Budget& budget : budgets)  // the paper's grid goes beyond some trained ranges
    request.inside.push_back(controller.outside_trained_ranges(budget).empty());
  request.requested_baselines = requested ? 1 : 0;  // fixed, as in the paper's table
  return run_sweep(evaluator, request, progress, lab.stop());
}

struct SearchSettings {
  std::vector<std::string> kinds;
  std::vector<Budget> budgets;
  int schedules = 0;
  uint32_t first_rollout = 0;
};

Json run_search(Laboratory& lab, const Controller& controller, const SearchSettings& settings,
                const SweepProgress& progress) {
  BlockEvaluator evaluator =
      lab.evaluator(lab.study().test, lab.protocol(controller), lab.study().blocks);
  const auto learned = lab.policy("learned", controller, block_count(evaluator));
  const auto fixed = lab.policy("fixed", controller, block_count(evaluator));
  std::vector<std::unique_ptr<Policy>> owned;
  SearchRequest request;
  request.policy = learned.get();
  request.fixed = fixed.get();
  for (const std::string& kind : settings.kinds) {
    owned.push_back(lab.policy(kind, controller, block_count(evaluator)));
    request.random.push_back(owned.back().get());
  }
  request.budgets = settings.budgets;
  request.schedules = settings.schedules;
  request.first_rollout = settings.first_rollout;
  return search_to_json(run_random_search(evaluator, request, progress, lab.stop()));
}

}  // namespace

Json run_training(Laboratory& lab, const Where& at, std::optional<uint64_t> seed,
                  const std::string& name) {
  const StudyController& controller = *at.family->find(at.controller);
  if (!controller.ready.empty()) {
    const Controller ready = lab.controller(*at.family, at.controller);  // it fits the model
    const std::string unlike = ready.unlike_training(lab.model().outside_paper());
    if (!unlike.empty()) lab.note(fmt::format("{}: {}", controller.ready.string(), unlike));
    return {{"ready", controller.ready.filename().string()}};
  }
  const auto out = lab.results().controller_dir(at.family->name, name);
  lab.train({&controller, out, lab.results().dir() / "cache", seed});
  return training_summary_to_json(training_summary(out));
}

Json run_frontier(Laboratory& lab, const Where& at, const SweepProgress& progress) {
  Controller controller = lab.controller(*at.family, at.controller);
  const ProtocolOptions protocol = lab.protocol(controller);
  BlockEvaluator evaluator =
      lab.evaluator(lab.study().valid, protocol, lab.study().validation_blocks);
  const Sweep sweep =
      sweep_over(lab, controller, evaluator, {},
                 grid(controller, lab.study().budgets, lab.study().grid), false, progress);
  // A controller that came with the study is not ours to change.
  if (at.family->find(at.controller)->ready.empty()) {
    controller.set_frontier(dial_frontier(sweep));
    controller.save(lab.controller_dir(*at.family, at.controller));
  }
  return sweep_to_json(sweep);
}

Json run_main_sweep(Laboratory& lab, const StudyFamily& family, const std::string& name,
                    const std::vector<std::string>& baselines, int budgets, bool requested,
                    const SweepProgress& progress) {
  const Controller controller = lab.controller(family, name);
  BlockEvaluator evaluator =
      lab.evaluator(lab.study().test, lab.protocol(controller), lab.study().blocks_of_sweeps());
  return sweep_to_json(sweep_over(lab, controller, evaluator, baselines,
                                  grid(controller, budgets, lab.study().grid), requested,
                                  progress));
}

Json run_heuristics(Laboratory& lab, const Where& at, const SweepProgress& progress) {
  const Controller controller = lab.controller(*at.family, at.controller);
  const Sweep sweep = finished_sweep(lab, sweep_job(at.family->name, at.controller));
  BlockEvaluator evaluator =
      lab.evaluator(lab.study().test, lab.protocol(controller), lab.study().blocks_of_sweeps());
  const auto fixed = lab.policy("fixed", controller, block_count(evaluator));
  std::vector<std::string> names;
  std::vector<Arm> arms;
  for (size_t b = 0; b < sweep.baselines.size(); ++b) {
    if (!is_heuristic(sweep.baselines[b])) continue;
    names.push_back(sweep.baselines[b]);
    for (size_t i = 0; i < sweep.points.size(); ++i)
      arms.push_back(
          {fixed.get(), sweep.points[i].realised.at(b).realised, static_cast<uint32_t>(i)});
  }
  const auto results = evaluator.run(arms, false, progress, lab.stop());
  BesideHeuristics perplexities;
  for (size_t arm = 0; arm < arms.size(); ++arm)
    perplexities[names[arm / sweep.points.size()]].push_back(perplexity(results[arm]));
  return beside_heuristics_to_json(perplexities);
}

Json run_landscape(Laboratory& lab, const Where& at, const SweepProgress& progress) {
  const Controller controller = lab.controller(*at.family, at.controller);
  const auto& landscape = lab.study().experiments.landscape;
  return run_search(lab, controller,
                    {{"random-matched", "random-uniform"},
                     frontier_budgets(lab, at, landscape.points),
                     landscape.schedules,
                     static_cast<uint32_t>(Draws::landscape)},
                    progress);
}

Json run_search_point(Laboratory& lab, const Where& at, int point, const SweepProgress& progress) {
  const Controller controller = lab.controller(*at.family, at.controller);
  const auto& search = lab.study().experiments.search;
  const std::vector<Budget> budgets = frontier_budgets(lab, at, search.points);
  // A frontier may have fewer points than were asked for; the report says so.
  if (point >= static_cast<int>(budgets.size())) return search_to_json({});
  const auto first = static_cast<uint32_t>(Draws::search) +
                     static_cast<uint32_t>(point) * static_cast<uint32_t>(search.schedules);
  return run_search(
      lab, controller,
      {{"random-matched"}, {budgets[static_cast<size_t>(point)]}, search.schedules, first},
      progress);
}

// Budgets inside the one axis' range, its ends (where there is nothing to choose) left out.
Json run_single(Laboratory& lab, const Where& at, const SweepProgress& progress) {
  const Controller controller = lab.controller(*at.family, at.controller);
  const auto& single = lab.study().experiments.single;
  return run_search(lab, controller,
                    {{"random-matched"},
                     grid(controller, single.points),
                     single.schedules,
                     static_cast<uint32_t>(Draws::single)},
                    progress);
}

Json run_kv_pollution(Laboratory& lab, const SweepProgress& progress) {
  PollutionOptions options = lab.study().experiments.pollution;
  options.seed = lab.study().seed;
  const BlockDataset& data = lab.blocks(lab.study().test, options.block_length());
  return pollution_to_json(run_pollution(lab.model(), data, options, progress, lab.stop()));
}

// Static methods, one knob each.
Json run_static_points(Laboratory& lab, const SweepProgress& progress) {
  struct Static {
    std::string label;
    Action action;
  };
  std::vector<Static> points{{"dense", {}}};
  const auto& methods = lab.study().experiments.static_methods;
  for (const float kappa : methods.kappa)
    points.push_back({fmt::format("Quest {:.0f} %", 100 * kappa), {.kappa = kappa}});
  for (const int bits : methods.bits)
    points.push_back({fmt::format("ZeroQuant {} bits", bits), {.bits = bits}});
  for (const float rho : methods.rho)
    points.push_back({fmt::format("TEAL {:.0f} %", 100 * rho), {.rho = rho}});
  ProtocolOptions protocol;
  protocol.context = lab.study().context;
  protocol.horizon = paper_horizon;
  protocol.sequence.page_size = 8;
  // The blocks of the sweeps, over whose frontiers they are drawn.
  BlockEvaluator evaluator =
      lab.evaluator(lab.study().test, protocol, lab.study().blocks_of_sweeps());
  std::vector<std::unique_ptr<Policy>> policies;
  std::vector<Arm> arms;
  for (const Static& point : points) {
    policies.push_back(make_constant_policy(point.action));
    arms.push_back({policies.back().get(), Budget{}, 0});
  }
  const auto results = evaluator.run(arms, false, progress, lab.stop());
  Json list = Json::array();
  for (size_t i = 0; i < points.size(); ++i)
    list.push_back({{"label", points[i].label},
                    {"action", to_string(points[i].action)},
                    {"perplexity", perplexity(results[i])}});
  return {{"points", list}};
}

Json run_timed(Laboratory& lab, const Where& at, const SweepProgress& progress) {
  const Controller controller = lab.controller(*at.family, at.controller);
  const auto& timed = lab.study().experiments.timed;
  ProtocolOptions protocol = lab.protocol(controller);
  protocol.timed = true;
  BlockEvaluator evaluator = lab.evaluator(lab.study().test, protocol, timed.blocks);
  return sweep_to_json(sweep_over(lab, controller, evaluator, {"fixed"},
                                  frontier_budgets(lab, at, timed.points), false, progress));
}

Json run_behaving(Laboratory& lab, const Where& at, const SweepProgress& progress) {
  const Controller controller = lab.controller(*at.family, at.controller);
  const ProtocolOptions protocol = lab.protocol(controller);
  BlockEvaluator evaluator = lab.evaluator(lab.study().test, protocol, lab.study().blocks);
  const auto learned = lab.policy("learned", controller, block_count(evaluator));
  return behaviour_to_json(
      run_behaviour(evaluator, lab.blocks(lab.study().test, protocol.block_length()), *learned,
                    frontier_budgets(lab, at, lab.study().experiments.behaviour.points),
                    token_kinds(lab.tokenizer()), progress, lab.stop()));
}

Json run_free(Laboratory& lab, const Where& at, const SweepProgress& progress) {
  const Controller controller = lab.controller(*at.family, at.controller);
  const auto& settings = lab.study().experiments.free;
  FreeGenerationOptions options;
  options.prompt_tokens = settings.prompt_tokens;
  options.tokens = settings.tokens;
  options.horizon = controller.settings().horizon;
  options.sequence = controller.settings().sequence;
  const BlockDataset& blocks = lab.blocks(lab.study().test, options.block_length());
  options.prompts = static_cast<int>(std::min<int64_t>(settings.prompts, blocks.size()));
  const auto learned = lab.policy("learned", controller, options.prompts);
  const auto fixed = lab.policy("fixed", controller, options.prompts);
  return free_generation_to_json(run_free_generation(lab.model(), blocks, *learned, *fixed,
                                                     frontier_budgets(lab, at, settings.points),
                                                     options, progress, lab.stop()));
}

Json run_transfer(Laboratory& lab, const Where& at, const StudyText& text, int context,
                  const SweepProgress& progress) {
  const Controller controller = lab.controller(*at.family, at.controller);
  ProtocolOptions protocol = lab.protocol(controller);
  protocol.context = context;
  const auto& transfer = lab.study().experiments.transfer;
  BlockEvaluator evaluator = lab.evaluator(text, protocol, transfer.blocks);
  return sweep_to_json(sweep_over(lab, controller, evaluator, {"fixed"},
                                  grid(controller, std::min(lab.study().budgets, 27)), false,
                                  progress));
}

}  // namespace sol
