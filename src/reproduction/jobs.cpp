#include "reproduction/jobs.h"

#include <algorithm>
#include <set>

#include "base/fail.h"
#include "evaluation/behaviour.h"
#include "evaluation/budget_grid.h"
#include "evaluation/free_generation.h"
#include "evaluation/probe.h"
#include "evaluation/sweep_summary.h"
#include "policy/action_json.h"
#include "policy/policies.h"
#include "reproduction/experiment_json.h"
#include "reproduction/training_log.h"

namespace sol {
namespace {

// What a training update costs beside a decoded token of evaluation, measured once on the embedded
// model; only the estimate of the time left depends on it.
constexpr double tokens_per_update = 6000;
constexpr int usual_horizon = 16;  // where a controller's own is not known yet

struct Where {
  const StudyFamily* family;
  std::string controller;
};

// Random schedules of different experiments must not share draws.
enum class Draws : uint32_t { landscape = 0, search = 1u << 20, single = 1u << 22 };

std::vector<Budget> grid(const Controller& controller, int at_least) {
  GridRequest request;
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

// Budgets on the validation frontier: operating points are chosen on other text than they are
// judged on.
std::vector<Budget> frontier_budgets(const Controller& controller, int count) {
  const auto& frontier = controller.settings().frontier;
  if (frontier.empty()) fail("the controller has no validation frontier");
  // The ends are where every policy must do the same.
  const size_t inner = frontier.size() > 4 ? 1 : 0;
  std::vector<Budget> budgets;
  for (size_t i = inner; i + inner < frontier.size(); ++i) budgets.push_back(frontier[i].budget);
  return spread(budgets, count);
}

Sweep sweep_over(Laboratory& lab, const Controller& controller, BlockEvaluator& evaluator,
                 const std::vector<std::string>& baselines, const std::vector<Budget>& budgets,
                 bool requested, const SweepProgress& progress) {
  const auto learned = lab.policy("learned", controller, evaluator);
  std::vector<std::unique_ptr<Policy>> owned;
  SweepRequest request;
  request.policy = learned.get();
  for (const std::string& name : baselines) {
    owned.push_back(lab.policy(name, controller, evaluator));
    request.baselines.push_back(owned.back().get());
  }
  request.budgets = budgets;
  request.match_requested = requested;
  return run_sweep(evaluator, request, progress, lab.stop());
}

Json run_training(Laboratory& lab, const Where& at, std::optional<uint64_t> seed,
                  const std::string& name) {
  const StudyController& controller = *at.family->find(at.controller);
  if (!controller.ready.empty()) {
    lab.controller(*at.family, at.controller);  // exists and fits the model
    return {{"ready", controller.ready.filename().string()}};
  }
  const auto out = lab.results().controller_dir(at.family->name, name);
  lab.train({&controller, out, lab.results().dir() / "cache", seed});
  return training_summary(out);
}

Json run_frontier(Laboratory& lab, const Where& at, const SweepProgress& progress) {
  Controller controller = lab.controller(*at.family, at.controller);
  const ProtocolOptions protocol = lab.protocol(controller);
  BlockEvaluator evaluator =
      lab.evaluator(lab.study().valid, protocol, lab.study().validation_blocks);
  const Sweep sweep = sweep_over(lab, controller, evaluator, {"fixed"},
                                 grid(controller, lab.study().budgets), false, progress);
  // A controller that came with the study is not ours to change.
  if (at.family->find(at.controller)->ready.empty()) {
    controller.set_frontier(validation_frontier(sweep));
    controller.save(lab.controller_dir(*at.family, at.controller));
  }
  return sweep_to_json(sweep);
}

Json run_main_sweep(Laboratory& lab, const StudyFamily& family, const std::string& name,
                    const std::vector<std::string>& baselines, bool requested,
                    const SweepProgress& progress) {
  // A controller trained again lies beside the study's and is in no family.
  Controller controller = Controller::load(lab.controller_dir(family, name));
  controller.require_model(lab.model().fingerprint(), name);
  BlockEvaluator evaluator =
      lab.evaluator(lab.study().test, lab.protocol(controller), lab.study().blocks);
  return sweep_to_json(sweep_over(lab, controller, evaluator, baselines,
                                  grid(controller, lab.study().budgets), requested, progress));
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
  const auto learned = lab.policy("learned", controller, evaluator);
  const auto fixed = lab.policy("fixed", controller, evaluator);
  std::vector<std::unique_ptr<Policy>> owned;
  SearchRequest request;
  request.policy = learned.get();
  request.fixed = fixed.get();
  for (const std::string& kind : settings.kinds) {
    owned.push_back(lab.policy(kind, controller, evaluator));
    request.random.push_back(owned.back().get());
  }
  request.budgets = settings.budgets;
  request.schedules = settings.schedules;
  request.first_rollout = settings.first_rollout;
  return search_to_json(run_random_search(evaluator, request, progress, lab.stop()));
}

Json run_landscape(Laboratory& lab, const Where& at, const SweepProgress& progress) {
  const Controller controller = lab.controller(*at.family, at.controller);
  const auto& landscape = lab.study().experiments.landscape;
  return run_search(lab, controller,
                    {{"random-matched", "random-uniform"},
                     frontier_budgets(controller, landscape.points),
                     landscape.schedules,
                     static_cast<uint32_t>(Draws::landscape)},
                    progress);
}

Json run_search_point(Laboratory& lab, const Where& at, int point, const SweepProgress& progress) {
  const Controller controller = lab.controller(*at.family, at.controller);
  const auto& search = lab.study().experiments.search;
  const std::vector<Budget> budgets = frontier_budgets(controller, search.points);
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

// The paper's static methods at their usual settings, one knob each.
Json run_static_points(Laboratory& lab, const SweepProgress& progress) {
  struct Static {
    const char* label;
    Action action;
  };
  const std::vector<Static> points{{"dense", {}},
                                   {"Quest 50 %", {.kappa = 0.5f}},
                                   {"Quest 30 %", {.kappa = 0.3f}},
                                   {"ZeroQuant 8 bits", {.bits = 8}},
                                   {"ZeroQuant 5 bits", {.bits = 5}},
                                   {"TEAL 80 %", {.rho = 0.8f}},
                                   {"TEAL 60 %", {.rho = 0.6f}}};
  ProtocolOptions protocol;
  protocol.context = lab.study().context;
  protocol.horizon = usual_horizon;
  protocol.sequence.page_size = 8;
  BlockEvaluator evaluator = lab.evaluator(lab.study().test, protocol, lab.study().blocks);
  std::vector<std::unique_ptr<Policy>> policies;
  std::vector<Arm> arms;
  for (const Static& point : points) {
    policies.push_back(make_constant_policy(point.action));
    arms.push_back({policies.back().get(), Budget{}, 0});
  }
  const auto results = evaluator.run(arms, false, progress, lab.stop());
  Json list = Json::array();
  for (size_t i = 0; i < points.size(); ++i) {
    const Action& action = points[i].action;
    list.push_back(
        {{"label", points[i].label},
         {"action", to_string(action)},
         {"net_keep", (static_cast<double>(action.kappa) + static_cast<double>(action.rho) +
                       static_cast<double>(action.eta())) /
                          3},
         {"perplexity", perplexity(results[i])}});
  }
  return {{"points", list}};
}

Json run_timed(Laboratory& lab, const Where& at, const SweepProgress& progress) {
  const Controller controller = lab.controller(*at.family, at.controller);
  const auto& timed = lab.study().experiments.timed;
  ProtocolOptions protocol = lab.protocol(controller);
  protocol.timed = true;
  BlockEvaluator evaluator = lab.evaluator(lab.study().test, protocol, timed.blocks);
  return sweep_to_json(sweep_over(lab, controller, evaluator, {"fixed"},
                                  frontier_budgets(controller, timed.points), false, progress));
}

Json run_behaving(Laboratory& lab, const Where& at, const SweepProgress& progress) {
  const Controller controller = lab.controller(*at.family, at.controller);
  const ProtocolOptions protocol = lab.protocol(controller);
  BlockEvaluator evaluator = lab.evaluator(lab.study().test, protocol, lab.study().blocks);
  const auto learned = lab.policy("learned", controller, evaluator);
  return behaviour_to_json(
      run_behaviour(evaluator, lab.blocks(lab.study().test, protocol.block_length()), *learned,
                    frontier_budgets(controller, lab.study().experiments.behaviour.points),
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
  BlockEvaluator evaluator =
      lab.evaluator(lab.study().test, lab.protocol(controller), lab.study().blocks);
  const auto learned = lab.policy("learned", controller, evaluator);
  const auto fixed = lab.policy("fixed", controller, evaluator);
  return free_generation_to_json(run_free_generation(lab.model(), blocks, *learned, *fixed,
                                                     frontier_budgets(controller, settings.points),
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

// Builds the list; one method per section.
class Planner {
 public:
  explicit Planner(const Study& study) : study_(study), experiments_(study.experiments) {}

  std::vector<Job> plan() {
    for (const StudyFamily& family : study_.families)
      for (const std::string& name : present(family, experiments_.spaces.controllers))
        spaces(family, name);
    for (const StudyFamily& family : study_.families) seeds(family);
    for (const StudyFamily& family : study_.families) {
      const auto names = present(family, experiments_.spaces.controllers);
      for (const std::string& name : names) landscape(family, name);
    }
    for (const StudyFamily& family : study_.families)
      for (const std::string& name : present(family, experiments_.spaces.controllers))
        for (int point = 0; point < experiments_.search.points; ++point)
          search(family, name, point);
    for (const StudyFamily& family : study_.families)
      for (const std::string& name : present(family, experiments_.single.controllers))
        single(family, name);
    for (const StudyFamily& family : study_.families)
      for (const std::string& name : present(family, experiments_.horizons.controllers))
        horizon(family, name);
    pollution();
    static_points();
    for (const StudyFamily& family : study_.families) beyond(family);
    return std::move(jobs_);
  }

 private:
  static std::vector<std::string> present(const StudyFamily& family,
                                          const std::vector<std::string>& names) {
    std::vector<std::string> found;
    for (const std::string& name : names)
      if (family.find(name)) found.push_back(name);
    return found;
  }

  void add(Job job) {
    if (known_.insert(job.name).second) jobs_.push_back(std::move(job));
  }

  double tokens(int arms, int blocks, int horizon = usual_horizon) const {
    return static_cast<double>(arms) * (blocks == 0 ? 250 : blocks) * horizon;
  }
  static int horizon_of(const std::string& name) {
    return name == "t64" ? 64 : name == "t4" ? 4 : usual_horizon;
  }

  void train(const StudyFamily& family, const std::string& name) {
    const StudyController& controller = *family.find(name);
    const double updates = controller.updates > 0 ? controller.updates : 1000;
    add({train_job(family.name, name),
         "training",
         {},
         controller.ready.empty() ? updates * tokens_per_update : 1,
         [at = Where{&family, name}](Laboratory& lab, const SweepProgress&) {
           return run_training(lab, at, std::nullopt, at.controller);
         }});
    add({frontier_job(family.name, name),
         "training",
         {train_job(family.name, name)},
         tokens(2 * study_.budgets, study_.validation_blocks, horizon_of(name)),
         [at = Where{&family, name}](Laboratory& lab, const SweepProgress& progress) {
           return run_frontier(lab, at, progress);
         }});
  }

  void sweep(const StudyFamily& family, const std::string& name, const std::string& section,
             const std::vector<std::string>& baselines, bool requested) {
    const int passes = 1 + static_cast<int>(baselines.size()) * (requested ? 2 : 1);
    add({sweep_job(family.name, name),
         section,
         {frontier_job(family.name, name)},
         tokens(passes * study_.budgets, study_.blocks, horizon_of(name)),
         [&family, name, baselines, requested](Laboratory& lab, const SweepProgress& progress) {
           return run_main_sweep(lab, family, name, baselines, requested, progress);
         }});
  }

  void spaces(const StudyFamily& family, const std::string& name) {
    train(family, name);
    sweep(family, name, "spaces", experiments_.spaces.baselines, true);
  }

  void seeds(const StudyFamily& family) {
    const std::string& base = experiments_.seeds.controller;
    if (!family.find(base) || family.find(base)->configuration.empty()) return;
    for (const uint64_t seed : experiments_.seeds.seeds) {
      const std::string name = reseeded(base, seed);
      const double updates = std::max(family.find(base)->updates, 1);
      add({train_job(family.name, name),
           "training",
           {},
           updates * tokens_per_update,
           [at = Where{&family, base}, seed, name](Laboratory& lab, const SweepProgress&) {
             return run_training(lab, at, seed, name);
           }});
      add({sweep_job(family.name, name),
           "spaces",
           {train_job(family.name, name)},
           tokens(2 * study_.budgets, study_.blocks),
           [&family, name](Laboratory& lab, const SweepProgress& progress) {
             return run_main_sweep(lab, family, name, {"fixed"}, false, progress);
           }});
    }
  }

  void landscape(const StudyFamily& family, const std::string& name) {
    const auto& settings = experiments_.landscape;
    add({landscape_job(family.name, name),
         "landscape",
         {frontier_job(family.name, name)},
         tokens(settings.points * (2 + 2 * settings.schedules), study_.blocks),
         [at = Where{&family, name}](Laboratory& lab, const SweepProgress& progress) {
           return run_landscape(lab, at, progress);
         }});
  }

  void search(const StudyFamily& family, const std::string& name, int point) {
    add({search_job(family.name, name, point),
         "search",
         {frontier_job(family.name, name)},
         tokens(2 + experiments_.search.schedules, study_.blocks),
         [at = Where{&family, name}, point](Laboratory& lab, const SweepProgress& progress) {
           return run_search_point(lab, at, point, progress);
         }});
  }

  void single(const StudyFamily& family, const std::string& name) {
    train(family, name);
    const auto& settings = experiments_.single;
    add({single_job(family.name, name),
         "single",
         {frontier_job(family.name, name)},
         tokens(settings.points * (2 + settings.schedules), study_.blocks),
         [at = Where{&family, name}](Laboratory& lab, const SweepProgress& progress) {
           return run_single(lab, at, progress);
         }});
  }

  void horizon(const StudyFamily& family, const std::string& name) {
    train(family, name);
    sweep(family, name, "horizons", {"fixed"}, true);
  }

  void pollution() {
    const PollutionOptions& options = experiments_.pollution;
    const auto settings =
        static_cast<int>(1 + options.kappa.size() + options.rho.size() + options.bits.size());
    add({"pollution",
         "pollution",
         {},
         tokens(settings, options.windows, options.corrupted + options.tail),
         [](Laboratory& lab, const SweepProgress& progress) {
           return run_kv_pollution(lab, progress);
         }});
  }

  void static_points() {
    add({"static",
         "scaling",
         {},
         tokens(7, study_.blocks),
         [](Laboratory& lab, const SweepProgress& progress) {
           return run_static_points(lab, progress);
         }});
  }

  void beyond(const StudyFamily& family) {
    using Run = Json (*)(Laboratory&, const Where&, const SweepProgress&);
    const auto of_one = [&](const std::string& controller, const std::string& job, double work,
                            Run run) {
      add({job,
           "ours",
           {frontier_job(family.name, controller)},
           work,
           [at = Where{&family, controller}, run](Laboratory& lab, const SweepProgress& progress) {
             return run(lab, at, progress);
           }});
    };
    const auto& timed = experiments_.timed;
    // Alone, a sequence decodes several times slower than in a batch.
    if (family.find(timed.controller))
      of_one(timed.controller, timed_job(family.name, timed.controller),
             10 * tokens(2 * timed.points, timed.blocks), run_timed);
    const auto& behaviour = experiments_.behaviour;
    if (family.find(behaviour.controller))
      of_one(behaviour.controller, behaviour_job(family.name, behaviour.controller),
             tokens(1 + behaviour.points, study_.blocks), run_behaving);
    const auto& free = experiments_.free;
    if (family.find(free.controller))
      of_one(free.controller, free_job(family.name, free.controller),
             tokens(1 + 2 * free.points, free.prompts, free.tokens), run_free);
    transfers(family);
  }

  void transfers(const StudyFamily& family) {
    const auto& settings = experiments_.transfer;
    if (!family.find(settings.controller)) return;
    const auto one = [&](const std::string& what, const StudyText& text, int context) {
      add({transfer_job(family.name, settings.controller, what),
           "ours",
           {frontier_job(family.name, settings.controller)},
           tokens(2 * 27, settings.blocks),
           [at = Where{&family, settings.controller}, text, context](
               Laboratory& lab, const SweepProgress& progress) {
             return run_transfer(lab, at, text, context, progress);
           }});
    };
    for (const StudyText& text : settings.texts) one(text.label, text, study_.context);
    for (const int context : settings.contexts)
      one(fmt::format("context-{}", context), study_.test, context);
  }

  const Study& study_;
  const StudyExperiments& experiments_;
  std::vector<Job> jobs_;
  std::set<std::string> known_;
};

std::string job_name(const char* kind, const std::string& family, const std::string& controller) {
  return fmt::format("{}/{}/{}", kind, family, controller);
}

}  // namespace

const std::vector<std::string>& section_names() {
  static const std::vector<std::string> names{"training",  "spaces",  "landscape",
                                              "search",    "single",  "horizons",
                                              "pollution", "scaling", "ours"};
  return names;
}

std::vector<Job> plan_jobs(const Study& study) {
  return Planner(study).plan();
}

std::string train_job(const std::string& family, const std::string& controller) {
  return job_name("train", family, controller);
}
std::string frontier_job(const std::string& family, const std::string& controller) {
  return job_name("frontier", family, controller);
}
std::string sweep_job(const std::string& family, const std::string& controller) {
  return job_name("sweep", family, controller);
}
std::string landscape_job(const std::string& family, const std::string& controller) {
  return job_name("landscape", family, controller);
}
std::string search_job(const std::string& family, const std::string& controller, int point) {
  return fmt::format("{}-{}", job_name("search", family, controller), point + 1);
}
std::string single_job(const std::string& family, const std::string& controller) {
  return job_name("single", family, controller);
}
std::string timed_job(const std::string& family, const std::string& controller) {
  return job_name("timed", family, controller);
}
std::string behaviour_job(const std::string& family, const std::string& controller) {
  return job_name("behaviour", family, controller);
}
std::string free_job(const std::string& family, const std::string& controller) {
  return job_name("free", family, controller);
}
std::string transfer_job(const std::string& family, const std::string& controller,
                         const std::string& what) {
  return fmt::format("{}-{}", job_name("transfer", family, controller), what);
}
std::string reseeded(const std::string& controller, uint64_t seed) {
  return fmt::format("{}-seed{}", controller, seed);
}

}  // namespace sol
