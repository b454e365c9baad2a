// Reading a study's YAML file.
#include <algorithm>
#include <limits>
#include <type_traits>

#include "base/fail.h"
#include "base/yaml.h"
#include "engine/request_checks.h"
#include "evaluation/named_policy.h"
#include "evaluation/sweep.h"
#include "reproduction/study.h"

namespace sol {
namespace {

namespace fs = std::filesystem;

// Their product stays below 2^20, the draws that jobs.cpp keeps apart for each experiment.
constexpr int most_schedules = 10000, most_points = 100;

fs::path beside(const fs::path& config, const std::string& path) {
  return path.empty() ? fs::path() : (config.parent_path() / path).lexically_normal();
}

int int_in(YamlMap& map, const std::string& key, int fallback, int low,
           int high = std::numeric_limits<int>::max()) {
  const int value = map.get_or(key, fallback);
  if (value < low || value > high)
    fail("{}: {} is {}; it must be {}", map.place(key), key, value,
         high == std::numeric_limits<int>::max() ? fmt::format("at least {}", low)
                                                 : fmt::format("from {} to {}", low, high));
  return value;
}

// Which budgets sweeps go over: at least so many spread evenly over what was trained, or the
// paper's.
void read_grid(YamlMap& evaluation, Study& study) {
  const auto grid = evaluation.get_or<std::string>("grid", "automatic");
  if (grid != "automatic" && grid != "paper")
    fail("{}: grid is \"{}\"; it must be automatic or paper", evaluation.place("grid"), grid);
  if (grid == "automatic") {
    study.budgets = int_in(evaluation, "budgets", study.budgets, 1, 1 << 20);
    return;
  }
  if (evaluation.has("budgets"))
    fail("{}: the paper's grid has {} budgets: leave out budgets, or grid",
         evaluation.place("budgets"), paper_grid_budgets);
  study.grid = GridRequest::Kind::paper;
  study.budgets = paper_grid_budgets;
}

StudyText read_text(YamlMap map, const fs::path& config, const std::string& name) {
  StudyText text;
  text.name = name;
  text.label = map.get_or("label", name);
  // A text of which only a label is known comes with the command.
  if (map.has("files") || !map.has("label")) {
    for (const std::string& file : map.get<std::vector<std::string>>("files"))
      text.files.push_back(beside(config, file));
    if (text.files.empty()) fail("{}: files names no file", map.place("files"));
  }
  const std::string format = map.get_or<std::string>("format", "documents");
  if (format == "wikitext")
    text.format = TextOptions::Format::wikitext;
  else if (format != "documents")
    fail("{}: format is \"{}\"; it must be documents or wikitext", map.place("format"), format);
  map.reject_unknown();
  return text;
}

Overrides read_overrides(YamlMap& map, const std::string& key) {
  Overrides overrides;
  if (auto set = map.optional_map(key))
    for (const std::string& name : set->keys()) overrides.emplace_back(name, set->yaml_text(name));
  return overrides;
}

void check_name(const YamlMap& map, const std::string& name) {
  const auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || c == '.';
  };
  if (name.empty() || name[0] == '.' || !std::ranges::all_of(name, allowed))
    fail("{}: \"{}\" becomes a file's name: use letters, digits, - _ .", map.place(name), name);
}

StudyController read_controller(YamlMap map, const std::string& name, const fs::path& config,
                                const Overrides& common) {
  StudyController controller;
  controller.name = name;
  controller.configuration = beside(config, map.get_or<std::string>("config", ""));
  controller.ready = beside(config, map.get_or<std::string>("ready", ""));
  controller.overrides = common;
  const Overrides own = read_overrides(map, "set");
  controller.overrides.insert(controller.overrides.end(), own.begin(), own.end());
  if (map.has("updates")) controller.updates = int_in(map, "updates", 1, 1);
  controller.minutes = map.get_or("minutes", 0.0);
  map.reject_unknown();
  if (controller.configuration.empty() == controller.ready.empty())
    fail("{}: a controller has either config, to train it by, or ready, where it exists",
         map.place("config"));
  if (!controller.ready.empty() && (map.has("set") || map.has("updates") || map.has("minutes")))
    fail("{}: a controller that is ready is not trained: set, updates and minutes say nothing",
         map.place("ready"));
  if (controller.minutes < 0)
    fail("{}: minutes is {}; it must be positive", map.place("minutes"), controller.minutes);
  return controller;
}

StudyFamily read_family(YamlMap map, const std::string& name, const fs::path& config,
                        const Overrides& study) {
  StudyFamily family;
  family.name = name;
  family.title = map.get_or("title", name);
  Overrides common = study;
  const Overrides own = read_overrides(map, "set");
  common.insert(common.end(), own.begin(), own.end());
  YamlMap controllers = map.map("controllers");
  for (const std::string& key : controllers.keys()) {
    check_name(controllers, key);
    family.controllers.push_back(read_controller(controllers.map(key), key, config, common));
  }
  if (family.controllers.empty()) fail("{}: no controller", map.place("controllers"));
  map.reject_unknown();
  return family;
}

// Controllers that an experiment names must exist in one family at least.
void check_known(const Study& study, const YamlMap& map, const std::string& key,
                 const std::vector<std::string>& names) {
  for (const std::string& name : names)
    if (std::ranges::none_of(study.families,
                             [&](const StudyFamily& family) { return family.find(name); }))
      fail("{}: no family has a controller \"{}\"", map.place(key), name);
}

void read_spaces(YamlMap map, Study& study) {
  auto& spaces = study.experiments.spaces;
  spaces.controllers = map.get_or("controllers", spaces.controllers);
  check_known(study, map, "controllers", spaces.controllers);
  spaces.baselines = map.get_or("baselines", spaces.baselines);
  for (const std::string& name : spaces.baselines) {
    if (name != elsewhere_baseline && !mixes_levels(name))
      fail("{}: \"{}\" is no policy that mixes levels to meet a budget", map.place("baselines"),
           name);
    if (name == elsewhere_baseline && study.blocks_of_sweeps() == 1)
      fail("{}: \"{}\" needs a second block of text", map.place("baselines"), name);
  }
  if (spaces.baselines.empty() || spaces.baselines.front() != "fixed")
    fail("{}: \"fixed\" must be the first baseline: every verdict is against it",
         map.place("baselines"));
  map.reject_unknown();
}

void read_single(YamlMap map, Study& study) {
  auto& single = study.experiments.single;
  single.controllers = map.get<std::vector<std::string>>("controllers");
  check_known(study, map, "controllers", single.controllers);
  single.schedules = int_in(map, "schedules", single.schedules, 1, most_schedules);
  single.points = int_in(map, "points", single.points, 1, most_points);
  single.budgets = int_in(map, "budgets", single.budgets, 0, 1 << 20);
  map.reject_unknown();
}

// Levels of one knob, "keep", "prune" or "bits", in place of the paper's.
template <typename Level>
void read_levels(YamlMap& map, const std::string& key, std::vector<Level>& levels,
                 Level Action::*knob) {
  if (!map.has(key)) return;
  levels.clear();
  for (const double level : map.get<std::vector<double>>(key)) {
    Action action;
    action.*knob = static_cast<Level>(std::clamp(level, 0.0, 100.0));
    try {
      check_action(action);
    } catch (const Error& error) {
      fail("{}: {}", map.place(key), error.what());
    }
    if (std::is_integral_v<Level> && static_cast<double>(action.*knob) != level)
      fail("{}: {} bits are no whole number", map.place(key), level);
    levels.push_back(action.*knob);
  }
}

void read_levels(YamlMap& map, std::vector<float>& kappa, std::vector<float>& rho,
                 std::vector<int>& bits) {
  read_levels(map, "keep", kappa, &Action::kappa);
  read_levels(map, "prune", rho, &Action::rho);
  read_levels(map, "bits", bits, &Action::bits);
}

void read_pollution(YamlMap map, Study& study) {
  PollutionOptions& pollution = study.experiments.pollution;
  pollution.windows = int_in(map, "windows", pollution.windows, 1, 1 << 20);
  pollution.prefix = int_in(map, "prefix", pollution.prefix, 1, 1 << 20);
  pollution.corrupted = int_in(map, "corrupted", pollution.corrupted, 1, 1 << 16);
  pollution.tail = int_in(map, "tail", pollution.tail, 1, 1 << 16);
  pollution.sequence.page_size = int_in(map, "page_size", pollution.sequence.page_size, 1, 4096);
  read_levels(map, pollution.kappa, pollution.rho, pollution.bits);
  map.reject_unknown();
}

template <typename Section>
void read_one_controller(YamlMap& map, Study& study, Section& section) {
  section.controller = map.get_or("controller", section.controller);
  check_known(study, map, "controller", {section.controller});
}

void read_transfer(YamlMap map, Study& study, const fs::path& config) {
  auto& transfer = study.experiments.transfer;
  read_one_controller(map, study, transfer);
  transfer.blocks = int_in(map, "blocks", transfer.blocks, 1, 1 << 20);
  for (const double context : map.get_or("contexts", std::vector<double>{})) {
    if (context != static_cast<int>(context) || context < 1)
      fail("{}: a context of {} tokens", map.place("contexts"), context);
    transfer.contexts.push_back(static_cast<int>(context));
  }
  if (auto texts = map.optional_map("texts"))
    for (const std::string& name : texts->keys()) {
      check_name(*texts, name);
      for (const int context : transfer.contexts)
        if (name == fmt::format("context-{}", context))
          fail("{}: a text called {} and the context {} would have one result", texts->place(name),
               name, context);
      transfer.texts.push_back(read_text(texts->map(name), config, name));
      if (transfer.texts.back().files.empty())
        fail("{}: {} names no files, and no option of the command brings them", texts->place(name),
             name);
    }
  map.reject_unknown();
}

void read_seeds(YamlMap map, Study& study) {
  auto& seeds = study.experiments.seeds;
  read_one_controller(map, study, seeds);
  for (const double seed : map.get<std::vector<double>>("seeds")) {
    if (seed < 0 || seed != static_cast<double>(static_cast<int64_t>(seed)))
      fail("{}: {} is no seed", map.place("seeds"), seed);
    const auto whole = static_cast<uint64_t>(seed);
    if (whole == study.seed || std::ranges::find(seeds.seeds, whole) != seeds.seeds.end())
      fail("{}: the seed {} is used already, so it says nothing about the spread",
           map.place("seeds"), whole);
    seeds.seeds.push_back(whole);
    for (const StudyFamily& family : study.families)
      if (family.find(reseeded(seeds.controller, whole)))
        fail("{}: {} with the seed {} would be called as another controller of family {}, {}",
             map.place("seeds"), seeds.controller, whole, family.name,
             reseeded(seeds.controller, whole));
  }
  if (std::ranges::none_of(study.families, [&](const StudyFamily& family) {
        return trained_again(family, seeds.controller);
      }))
    fail("{}: {} is ready, so it cannot be trained with other seeds", map.place("controller"),
         seeds.controller);
  map.reject_unknown();
}

void read_experiments(YamlMap map, Study& study, const fs::path& config) {
  StudyExperiments& experiments = study.experiments;
  if (auto m = map.optional_map("spaces")) read_spaces(*m, study);
  if (auto m = map.optional_map("landscape")) {
    experiments.landscape.schedules =
        int_in(*m, "schedules", experiments.landscape.schedules, 1, most_schedules);
    experiments.landscape.points =
        int_in(*m, "points", experiments.landscape.points, 1, most_points);
    m->reject_unknown();
  }
  if (auto m = map.optional_map("search")) {
    experiments.search.schedules =
        int_in(*m, "schedules", experiments.search.schedules, 1, most_schedules);
    experiments.search.points = int_in(*m, "points", experiments.search.points, 1, most_points);
    m->reject_unknown();
  }
  if (auto m = map.optional_map("single")) read_single(*m, study);
  if (auto m = map.optional_map("horizons")) {
    experiments.horizons.controllers = m->get_or("controllers", experiments.horizons.controllers);
    check_known(study, *m, "controllers", experiments.horizons.controllers);
    m->reject_unknown();
  }
  if (auto m = map.optional_map("pollution")) read_pollution(*m, study);
  if (auto m = map.optional_map("static")) {
    auto& methods = experiments.static_methods;
    read_levels(*m, methods.kappa, methods.rho, methods.bits);
    m->reject_unknown();
  }
  if (auto m = map.optional_map("timed")) {
    read_one_controller(*m, study, experiments.timed);
    experiments.timed.blocks = int_in(*m, "blocks", experiments.timed.blocks, 1, 1 << 20);
    experiments.timed.points = int_in(*m, "points", experiments.timed.points, 1, 1000);
    m->reject_unknown();
  }
  if (auto m = map.optional_map("behaviour")) {
    read_one_controller(*m, study, experiments.behaviour);
    experiments.behaviour.points = int_in(*m, "points", experiments.behaviour.points, 1, 1000);
    m->reject_unknown();
  }
  if (auto m = map.optional_map("free")) {
    read_one_controller(*m, study, experiments.free);
    experiments.free.prompts = int_in(*m, "prompts", experiments.free.prompts, 1, 1 << 20);
    experiments.free.prompt_tokens =
        int_in(*m, "prompt_tokens", experiments.free.prompt_tokens, 1, 1 << 20);
    experiments.free.tokens = int_in(*m, "tokens", experiments.free.tokens, 1, 1 << 20);
    experiments.free.points = int_in(*m, "points", experiments.free.points, 1, 1000);
    m->reject_unknown();
  }
  if (auto m = map.optional_map("transfer")) read_transfer(*m, study, config);
  if (auto m = map.optional_map("seeds")) read_seeds(*m, study);
  map.reject_unknown();
}

}  // namespace

Study load_study(const fs::path& config) {
  YamlMap root = YamlMap::read(config);
  Study study;
  study.name = root.get<std::string>("name");
  study.model = beside(config, root.get_or<std::string>("model", ""));
  const auto seed = root.get_or<int64_t>("seed", static_cast<int64_t>(study.seed));
  if (seed < 0) fail("{}: seed is {}; it must be 0 or more", root.place("seed"), seed);
  study.seed = static_cast<uint64_t>(seed);

  if (auto data = root.optional_map("data")) {
    if (data->has("train")) study.train = read_text(data->map("train"), config, "train");
    if (data->has("valid")) study.valid = read_text(data->map("valid"), config, "valid");
    if (data->has("test")) study.test = read_text(data->map("test"), config, "test");
    data->reject_unknown();
  }
  if (auto evaluation = root.optional_map("evaluation")) {
    study.context = int_in(*evaluation, "context", study.context, 1, 1 << 20);
    study.blocks = int_in(*evaluation, "blocks", study.blocks, 0, 1 << 30);
    if (evaluation->has("sweep_blocks"))
      study.sweep_blocks = int_in(*evaluation, "sweep_blocks", study.blocks, 0, 1 << 30);
    study.validation_blocks =
        int_in(*evaluation, "validation_blocks", study.validation_blocks, 1, 1 << 30);
    read_grid(*evaluation, study);
    evaluation->reject_unknown();
  }

  const Overrides common = read_overrides(root, "set");
  YamlMap families = root.map("families");
  for (const std::string& name : families.keys()) {
    check_name(families, name);
    study.families.push_back(read_family(families.map(name), name, config, common));
  }
  if (study.families.empty()) fail("{}: no family of controllers", root.place("families"));
  if (auto experiments = root.optional_map("experiments"))
    read_experiments(*experiments, study, config);
  root.reject_unknown();
  return study;
}

}  // namespace sol
