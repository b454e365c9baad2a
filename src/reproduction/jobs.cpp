#include "reproduction/jobs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <set>

#include "evaluation/named_policy.h"
#include "reproduction/job_runs.h"

namespace sol {
namespace {

// What a training update costs beside a decoded token of evaluation, measured once on the embedded
// model; only the estimate of the time left depends on it.
constexpr double tokens_per_update = 6000;
constexpr int guessed_horizon = 16;  // where a controller's own is not known yet

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
    for ([[maybe_unused]] const std::string& needed : job.after)
      assert(known_.contains(needed) && "planned before what needs it");
    if (known_.insert(job.name).second) {
      jobs_.push_back(std::move(job));
      return;
    }
    // Another section shows the same.
    std::vector<std::string>& sections = std::ranges::find(jobs_, job.name, &Job::name)->sections;
    for (const std::string& section : job.sections)
      if (std::ranges::find(sections, section) == sections.end()) sections.push_back(section);
  }

  double tokens(int arms, int blocks, int horizon = guessed_horizon) const {
    return static_cast<double>(arms) * (blocks == 0 ? 250 : blocks) * horizon;
  }
  // 1000 updates where only the configuration knows.
  static double training_work(const StudyController& controller) {
    if (!controller.ready.empty()) return 1;
    return (controller.updates > 0 ? controller.updates : 1000) * tokens_per_update;
  }
  // One that is ready needs none.
  const StudyText* training_text(const StudyController& controller) const {
    return controller.ready.empty() ? &study_.train : nullptr;
  }
  static int horizon_of(const std::string& name) {
    return name == "t64" ? 64 : name == "t4" ? 4 : guessed_horizon;
  }

  void train(const StudyFamily& family, const std::string& name) {
    add({train_job(family.name, name),
         {"training"},
         {},
         training_work(*family.find(name)),
         training_text(*family.find(name)),
         [at = Where{&family, name}](Laboratory& lab, const SweepProgress&) {
           return run_training(lab, at, std::nullopt, at.controller);
         }});
    add({frontier_job(family.name, name),
         {"training"},
         {train_job(family.name, name)},
         tokens(study_.budgets, study_.validation_blocks, horizon_of(name)),
         &study_.valid,
         [at = Where{&family, name}](Laboratory& lab, const SweepProgress& progress) {
           return run_frontier(lab, at, progress);
         }});
  }

  void sweep(const StudyFamily& family, const std::string& name,
             const std::vector<std::string>& sections, const std::vector<std::string>& baselines,
             bool requested) {
    // The policy, each baseline at its averages, and fixed at the requested ones.
    const int passes = 1 + static_cast<int>(baselines.size()) + (requested ? 1 : 0);
    const int budgets = budgets_of_sweep(study_, name);
    add({sweep_job(family.name, name),
         sections,
         {frontier_job(family.name, name)},
         tokens(passes * budgets, study_.blocks_of_sweeps(), horizon_of(name)),
         &study_.test,
         [&family, name, baselines, budgets, requested](Laboratory& lab,
                                                        const SweepProgress& progress) {
           return run_main_sweep(lab, family, name, baselines, budgets, requested, progress);
         }});
  }

  void spaces(const StudyFamily& family, const std::string& name) {
    train(family, name);
    std::vector<std::string> sections{"spaces"};
    if (name == experiments_.spaces.controllers.back()) sections.emplace_back("scaling");
    const auto& baselines = experiments_.spaces.baselines;
    sweep(family, name, sections, baselines, true);
    const auto heuristics = static_cast<int>(std::ranges::count_if(baselines, is_heuristic));
    if (heuristics == 0) return;
    add({heuristics_job(family.name, name),
         {"spaces"},
         {sweep_job(family.name, name)},
         tokens(heuristics * study_.budgets, study_.blocks_of_sweeps(), horizon_of(name)),
         &study_.test,
         [at = Where{&family, name}](Laboratory& lab, const SweepProgress& progress) {
           return run_heuristics(lab, at, progress);
         }});
  }

  void seeds(const StudyFamily& family) {
    const std::string& base = experiments_.seeds.controller;
    if (!trained_again(family, base)) return;
    for (const uint64_t seed : experiments_.seeds.seeds) {
      const std::string name = reseeded(base, seed);
      add({train_job(family.name, name),
           {"training"},
           {},
           training_work(*family.find(base)),
           training_text(*family.find(base)),
           [at = Where{&family, base}, seed, name](Laboratory& lab, const SweepProgress&) {
             return run_training(lab, at, seed, name);
           }});
      add({sweep_job(family.name, name),
           {"spaces"},
           {train_job(family.name, name)},
           tokens(2 * study_.budgets, study_.blocks_of_sweeps()),
           &study_.test,
           [&family, name](Laboratory& lab, const SweepProgress& progress) {
             return run_main_sweep(lab, family, name, {"fixed"}, lab.study().budgets, false,
                                   progress);
           }});
    }
  }

  void landscape(const StudyFamily& family, const std::string& name) {
    const auto& settings = experiments_.landscape;
    add({landscape_job(family.name, name),
         {"landscape"},
         {frontier_job(family.name, name)},
         tokens(settings.points * (2 + 2 * settings.schedules), study_.blocks),
         &study_.test,
         [at = Where{&family, name}](Laboratory& lab, const SweepProgress& progress) {
           return run_landscape(lab, at, progress);
         }});
  }

  void search(const StudyFamily& family, const std::string& name, int point) {
    add({search_job(family.name, name, point),
         {"search"},
         {frontier_job(family.name, name)},
         tokens(2 + experiments_.search.schedules, study_.blocks),
         &study_.test,
         [at = Where{&family, name}, point](Laboratory& lab, const SweepProgress& progress) {
           return run_search_point(lab, at, point, progress);
         }});
  }

  void single(const StudyFamily& family, const std::string& name) {
    train(family, name);
    const auto& settings = experiments_.single;
    add({single_job(family.name, name),
         {"single"},
         {frontier_job(family.name, name)},
         tokens(settings.points * (2 + settings.schedules), study_.blocks),
         &study_.test,
         [at = Where{&family, name}](Laboratory& lab, const SweepProgress& progress) {
           return run_single(lab, at, progress);
         }});
    if (settings.budgets > 0) sweep(family, name, {"single"}, {"fixed"}, true);
  }

  void horizon(const StudyFamily& family, const std::string& name) {
    train(family, name);
    sweep(family, name, {"horizons"}, {"fixed"}, true);
  }

  void pollution() {
    const PollutionOptions& options = experiments_.pollution;
    const auto settings =
        static_cast<int>(1 + options.kappa.size() + options.rho.size() + options.bits.size());
    add({"pollution",
         {"pollution"},
         {},
         tokens(settings, options.windows, options.corrupted + options.tail),
         &study_.test,
         [](Laboratory& lab, const SweepProgress& progress) {
           return run_kv_pollution(lab, progress);
         }});
  }

  void static_points() {
    const auto& methods = experiments_.static_methods;
    add({"static",
         {"scaling"},
         {},
         tokens(
             1 + static_cast<int>(methods.kappa.size() + methods.rho.size() + methods.bits.size()),
             study_.blocks_of_sweeps()),
         &study_.test,
         [](Laboratory& lab, const SweepProgress& progress) {
           return run_static_points(lab, progress);
         }});
  }

  void beyond(const StudyFamily& family) {
    using Run = Json (*)(Laboratory&, const Where&, const SweepProgress&);
    const auto of_one = [&](const std::string& controller, const std::string& job, double work,
                            Run run) {
      train(family, controller);
      add({job,
           {"ours"},
           {frontier_job(family.name, controller)},
           work,
           &study_.test,
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
    if (!settings.texts.empty() || !settings.contexts.empty()) train(family, settings.controller);
    const auto one = [&](const std::string& what, const StudyText& text, int context) {
      add({transfer_job(family.name, settings.controller, what),
           {"ours"},
           {frontier_job(family.name, settings.controller)},
           tokens(2 * 27, settings.blocks),
           &text,
           [at = Where{&family, settings.controller}, text, context](
               Laboratory& lab, const SweepProgress& progress) {
             return run_transfer(lab, at, text, context, progress);
           }});
    };
    for (const StudyText& text : settings.texts) one(text.name, text, study_.context);
    for (const int context : settings.contexts)
      one(fmt::format("context-{}", context), study_.test, context);
  }

  const Study& study_;
  const StudyExperiments& experiments_;
  std::vector<Job> jobs_;
  std::set<std::string> known_;
};

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

}  // namespace sol
