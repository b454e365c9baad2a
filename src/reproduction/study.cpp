#include "reproduction/study.h"

#include <fmt/format.h>

#include <algorithm>

namespace sol {
namespace {

void add_new(std::vector<std::string>& names, const std::vector<std::string>& more) {
  for (const std::string& name : more)
    if (std::ranges::find(names, name) == names.end()) names.push_back(name);
}

}  // namespace

const StudyController* StudyFamily::find(const std::string& controller) const {
  for (const StudyController& one : controllers)
    if (one.name == controller) return &one;
  return nullptr;
}

std::vector<std::string> spaces_and_horizons(const Study& study) {
  std::vector<std::string> names = study.experiments.spaces.controllers;
  add_new(names, study.experiments.horizons.controllers);
  return names;
}

std::vector<std::string> swept_controllers(const Study& study) {
  std::vector<std::string> names = spaces_and_horizons(study);
  if (study.experiments.single.budgets > 0) add_new(names, study.experiments.single.controllers);
  return names;
}

int budgets_of_sweep(const Study& study, const std::string& controller) {
  const std::vector<std::string> names = spaces_and_horizons(study);
  const bool single = std::ranges::find(names, controller) == names.end();
  return single ? study.experiments.single.budgets : study.budgets;
}

bool trained_again(const StudyFamily& family, const std::string& controller) {
  const StudyController* found = family.find(controller);
  return found && !found->configuration.empty();
}

std::string reseeded(const std::string& controller, uint64_t seed) {
  return fmt::format("{}-seed{}", controller, seed);
}

void make_quick(Study& study) {
  const auto at_most = [](int& value, int limit) { value = std::min(value, limit); };
  study.quick = true;
  study.blocks = study.blocks == 0 ? 6 : std::min(study.blocks, 6);
  study.sweep_blocks.reset();
  at_most(study.validation_blocks, 4);
  at_most(study.budgets, 8);
  study.grid = GridRequest::Kind::automatic;
  for (StudyFamily& family : study.families)
    for (StudyController& controller : family.controllers) {
      if (controller.configuration.empty()) continue;
      controller.updates = 2;
      controller.minutes = 0;
      for (const auto& [key, value] : Overrides{{"rollout.batch", "2"},
                                                {"rollout.schedules", "7"},
                                                {"optimisation.target_steps", "128"},
                                                {"optimisation.grad_accum", "1"}})
        controller.overrides.emplace_back(key, value);
    }
  StudyExperiments& experiments = study.experiments;
  at_most(experiments.landscape.schedules, 4);
  at_most(experiments.landscape.points, 3);
  at_most(experiments.search.schedules, 12);
  at_most(experiments.search.points, 2);
  at_most(experiments.single.schedules, 6);
  at_most(experiments.single.points, 1);
  at_most(experiments.single.budgets, 4);
  at_most(experiments.pollution.windows, 6);
  at_most(experiments.timed.blocks, 2);
  at_most(experiments.timed.points, 3);
  at_most(experiments.behaviour.points, 2);
  at_most(experiments.free.prompts, 4);
  at_most(experiments.free.points, 1);
  at_most(experiments.transfer.blocks, 4);
  auto& seeds = experiments.seeds.seeds;
  if (!seeds.empty()) seeds.erase(seeds.begin() + 1, seeds.end());
}

}  // namespace sol
