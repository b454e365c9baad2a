#include "training/config.h"

#include <algorithm>

#include "base/fail.h"
#include "base/yaml.h"
#include "policy/action_json.h"
#include "training/field_error.h"
#include "training/linear_decay.h"

namespace sol {
namespace {

template <typename Enum>
using Names = std::initializer_list<std::pair<const char*, Enum>>;

const Names<AdvantageOptions::Returns> returns_names{{"sum", AdvantageOptions::Returns::sum},
                                                     {"max", AdvantageOptions::Returns::max},
                                                     {"none", AdvantageOptions::Returns::none}};
const Names<AdvantageOptions::Level> level_names{{"process", AdvantageOptions::Level::process},
                                                 {"outcome", AdvantageOptions::Level::outcome}};
const Names<AdvantageOptions::Norm> norm_names{{"center", AdvantageOptions::Norm::center},
                                               {"zscore", AdvantageOptions::Norm::zscore}};
const Names<AdvantageOptions::WhitenOver> whiten_over_names{
    {"batch", AdvantageOptions::WhitenOver::batch}, {"group", AdvantageOptions::WhitenOver::group}};
const Names<TextOptions::Format> format_names{{"documents", TextOptions::Format::documents},
                                              {"wikitext", TextOptions::Format::wikitext}};

template <typename Enum>
void read_name(YamlMap& map, const char* key, const Names<Enum>& names, Enum& out) {
  if (!map.has(key)) return;
  const std::string given = map.get<std::string>(key);
  std::string known;
  for (const auto& [name, value] : names) {
    if (given == name) {
      out = value;
      return;
    }
    known += known.empty() ? name : std::string(", ") + name;
  }
  fail("{}: {} is \"{}\"; it must be one of: {}", map.place(key), key, given, known);
}

template <typename Enum>
const char* name_of(const Names<Enum>& names, Enum value) {
  for (const auto& [name, candidate] : names) {
    if (candidate == value) return name;
  }
  return "";
}

// `key`: [lowest, highest], or a list under `key`_list.
BudgetSource read_source(YamlMap& budgets, const std::string& key) {
  BudgetSource source;
  const std::string list = key + "_list";
  if (budgets.has(key) && budgets.has(list))
    fail("{}: budgets.{} and budgets.{} exclude each other", budgets.place(list), key, list);
  if (budgets.has(list)) {
    source.list = budgets.get<std::vector<double>>(list);
    if (source.list.empty()) fail("{}: budgets.{} is empty", budgets.place(list), list);
    const auto [low, high] = std::minmax_element(source.list.begin(), source.list.end());
    source.range = {*low, *high};
    return source;
  }
  const auto range = budgets.get<std::vector<double>>(key);
  if (range.size() != 2) fail("{}: budgets.{} must be [lowest, highest]", budgets.place(key), key);
  source.range = {range[0], range[1]};
  return source;
}

BudgetSource read_budget(YamlMap& budgets, const std::string& key, const ActionSpace& space,
                         Axis axis) {
  BudgetSource source;
  const std::string list = key + "_list";
  const bool has_range = budgets.has(key), has_list = budgets.has(list);
  if (has_range || has_list || space.on(axis)) source = read_source(budgets, key);
  if (space.on(axis)) return source;
  // An axis that is off has its only level as its budget; asking for another would be ignored.
  const float level = space.levels(axis)[0];
  const auto other = [&](double budget) { return static_cast<float>(budget) != level; };
  if ((has_range || has_list) && (other(source.range.low) || other(source.range.high))) {
    fail("{}: budgets.{}: this axis is off, its only level is {}; remove the budget or add levels",
         budgets.place(has_list ? list : key), has_list ? list : key, level);
  }
  return {{level, level}, {}};
}

// A share of the dense time instead of averages per axis, which are then only what the levels
// allow.
void read_time_budget(YamlMap& budgets, TrainingConfig& c) {
  for (const char* key : {"keep", "keep_list", "prune", "prune_list", "quant", "quant_list"})
    if (budgets.has(key))
      fail("{}: budgets.{} and a budget of time exclude each other", budgets.place(key), key);
  c.time = read_source(budgets, "time");
  const auto levels = [&](Axis axis) {
    const std::vector<float> all = c.space.levels(axis);
    return BudgetSource{{all.front(), all.back()}, {}};
  };
  c.kappa = levels(Axis::kappa);
  c.rho = levels(Axis::rho);
  c.eta = levels(Axis::eta);
}

void read_penalty(YamlMap& map, TrainingConfig& c) {
  PenaltyOptions& penalty = c.advantage.penalty;
  for (const char* key : {"keep", "prune", "quant"})
    if (c.time && map.has(key))
      fail("{}: penalty.{}: the budget is a time, whose penalty is penalty.time", map.place(key),
           key);
  if (!c.time && map.has("time"))
    fail("{}: penalty.time needs a budget of time (budgets.time)", map.place("time"));
  penalty.kappa = map.get_or("keep", penalty.kappa);
  penalty.rho = map.get_or("prune", penalty.rho);
  penalty.eta = map.get_or("quant", penalty.eta);
  penalty.time = map.get_or("time", penalty.time);
  penalty.tolerance = map.get_or("tolerance", penalty.tolerance);
  map.reject_unknown();
}

ActionSpace read_space(YamlMap& root) {
  YamlMap actions = root.map("actions");
  const auto keep = actions.get<std::vector<double>>("keep");
  const auto prune = actions.get<std::vector<std::string>>("prune");
  const auto quant = actions.get<std::vector<std::string>>("quant");
  actions.reject_unknown();
  try {
    return ActionSpace::from_notation(keep, prune, quant);
  } catch (const Error& error) {
    fail("{}: {}", root.place("actions"), error.what());
  }
}

void read_into(YamlMap& root, TrainingConfig& c) {
  c.name = root.get<std::string>("name");
  c.model = root.get_or<std::string>("model", "");
  const auto seed = root.get_or<int64_t>("seed", static_cast<int64_t>(c.seed));
  if (seed < 0) fail("{}: seed is {}; it must be 0 or more", root.place("seed"), seed);
  c.seed = static_cast<uint64_t>(seed);

  c.space = read_space(root);
  YamlMap budgets = root.map("budgets");
  if (budgets.has("time") || budgets.has("time_list")) {
    read_time_budget(budgets, c);
  } else {
    c.kappa = read_budget(budgets, "keep", c.space, Axis::kappa);
    c.rho = read_budget(budgets, "prune", c.space, Axis::rho);
    c.eta = read_budget(budgets, "quant", c.space, Axis::eta);
  }
  c.enforced = budgets.get_or("enforced", c.enforced);
  c.prior = budgets.get_or("prior", c.prior);
  budgets.reject_unknown();

  if (auto m = root.optional_map("curriculum")) {
    c.curriculum.share = m->get_or("share", c.curriculum.share);
    c.curriculum.width = m->get_or("width", c.curriculum.width);
    m->reject_unknown();
  }
  if (auto m = root.optional_map("penalty")) read_penalty(*m, c);
  if (auto m = root.optional_map("quest")) {
    c.sequence.page_size = m->get_or("page_size", c.sequence.page_size);
    c.sequence.sinks = m->get_or("sinks", c.sequence.sinks);
    c.sequence.window = m->get_or("window", c.sequence.window);
    m->reject_unknown();
  }
  if (auto m = root.optional_map("rollout")) {
    c.context = m->get_or("context", c.context);
    c.horizon = m->get_or("horizon", c.horizon);
    c.schedules = m->get_or("schedules", c.schedules);
    c.batch = m->get_or("batch", c.batch);
    c.loss.temperature = m->get_or("temperature", c.loss.temperature);
    m->reject_unknown();
  }
  if (auto m = root.optional_map("policy")) {
    c.policy.d_model = m->get_or("d_model", c.policy.d_model);
    c.policy.heads = m->get_or("heads", c.policy.heads);
    c.policy.layers = m->get_or("layers", c.policy.layers);
    c.policy.mlp_ratio = m->get_or("mlp_ratio", c.policy.mlp_ratio);
    c.policy.action_dim = m->get_or("action_dim", c.policy.action_dim);
    c.policy.max_length = m->get_or("max_length", c.policy.max_length);
    c.policy.surprisal = m->get_or("surprisal", c.policy.surprisal);
    m->reject_unknown();
  }
  if (auto m = root.optional_map("reward")) {
    c.advantage.gamma = m->get_or("gamma", c.advantage.gamma);
    read_name(*m, "returns", returns_names, c.advantage.returns);
    read_name(*m, "level", level_names, c.advantage.level);
    read_name(*m, "norm", norm_names, c.advantage.norm);
    c.advantage.whiten = m->get_or("whiten", c.advantage.whiten);
    read_name(*m, "whiten_over", whiten_over_names, c.advantage.whiten_over);
    c.advantage.spent_baseline = m->get_or("spent_baseline", c.advantage.spent_baseline);
    c.task_kl = m->get_or("task_kl", c.task_kl);
    c.price_rate = m->get_or("price_rate", c.price_rate);
    m->reject_unknown();
  }
  if (auto m = root.optional_map("optimisation")) {
    c.updates = m->get_or("updates", c.updates);
    c.optimiser.learning_rate = m->get_or("learning_rate", c.optimiser.learning_rate);
    c.optimiser.final_learning_rate = m->get_optional<double>("final_learning_rate");
    c.optimiser.weight_decay = m->get_or("weight_decay", c.optimiser.weight_decay);
    c.optimiser.max_gradient_norm = m->get_or("max_grad_norm", c.optimiser.max_gradient_norm);
    c.grad_accum = m->get_or("grad_accum", c.grad_accum);
    c.loss.clip = m->get_or("clip", c.loss.clip);
    c.loss.entropy = m->get_or("entropy", c.loss.entropy);
    c.final_entropy = m->get_optional<double>("final_entropy");
    c.minibatch = m->get_or("minibatch", c.minibatch);
    c.target_steps = m->get_or("target_steps", c.target_steps);
    m->reject_unknown();
  }
  if (auto m = root.optional_map("distil")) {
    c.loss.distil = m->get_or("weight", c.loss.distil);
    c.distil_tolerance = m->get_or("tolerance", c.distil_tolerance);
    m->reject_unknown();
  }
  if (auto m = root.optional_map("data")) {
    c.text.text_field = m->get_or("text_field", c.text.text_field);
    read_name(*m, "format", format_names, c.text.format);
    m->reject_unknown();
  }
  if (auto m = root.optional_map("checkpoint")) {
    c.checkpoint_updates = m->get_or("updates", c.checkpoint_updates);
    c.checkpoint_minutes = m->get_or("minutes", c.checkpoint_minutes);
    m->reject_unknown();
  }
  root.reject_unknown();
}

Json budget_json(const BudgetSource& source) {
  if (!source.list.empty()) return {{"list", source.list}};
  return Json::array({source.range.low, source.range.high});
}

}  // namespace

std::shared_ptr<const BudgetGuard> TrainingConfig::budget_guard() const {
  return enforced ? std::make_shared<const BudgetGuard>(space, prior) : nullptr;
}

PolicyNetworkShape TrainingConfig::network_shape(int hidden_size) const {
  PolicyNetworkShape shape = policy;
  shape.hidden_size = hidden_size;
  shape.actions = space.size();
  return shape;
}

int TrainingConfig::minibatch_schedules() const {
  return std::max(1, minibatch / horizon);
}

double TrainingConfig::entropy_weight(int64_t update) const {
  return final_entropy ? linear_decay(loss.entropy, *final_entropy, update, updates) : loss.entropy;
}

bool TrainingConfig::depends_on_length() const {
  return optimiser.final_learning_rate || final_entropy || curriculum.share > 0;
}

Json TrainingConfig::to_json() const {
  Json json{
      {"name", name},
      {"model", model},
      {"seed", seed},
      {"actions", action_space_to_json(space)},
      {"budgets",
       {{"keep", budget_json(kappa)}, {"prune", budget_json(rho)}, {"quant", budget_json(eta)}}},
      {"curriculum", {{"share", curriculum.share}, {"width", curriculum.width}}},
      {"penalty",
       {{"keep", advantage.penalty.kappa},
        {"prune", advantage.penalty.rho},
        {"quant", advantage.penalty.eta},
        {"tolerance", advantage.penalty.tolerance}}},
      {"quest",
       {{"page_size", sequence.page_size}, {"sinks", sequence.sinks}, {"window", sequence.window}}},
      {"rollout",
       {{"context", context},
        {"horizon", horizon},
        {"schedules", schedules},
        {"batch", batch},
        {"temperature", loss.temperature}}},
      {"policy",
       {{"d_model", policy.d_model},
        {"heads", policy.heads},
        {"layers", policy.layers},
        {"mlp_ratio", policy.mlp_ratio},
        {"action_dim", policy.action_dim},
        {"max_length", policy.max_length}}},
      {"reward",
       {{"gamma", advantage.gamma},
        {"returns", name_of(returns_names, advantage.returns)},
        {"level", name_of(level_names, advantage.level)},
        {"norm", name_of(norm_names, advantage.norm)},
        {"whiten", advantage.whiten},
        {"whiten_over", name_of(whiten_over_names, advantage.whiten_over)},
        {"task_kl", task_kl}}},
      {"optimisation",
       {{"updates", updates},
        {"learning_rate", optimiser.learning_rate},
        {"final_learning_rate",
         optimiser.final_learning_rate ? Json(*optimiser.final_learning_rate) : Json(nullptr)},
        {"weight_decay", optimiser.weight_decay},
        {"max_grad_norm", optimiser.max_gradient_norm},
        {"grad_accum", grad_accum},
        {"clip", loss.clip},
        {"entropy", loss.entropy},
        {"final_entropy", final_entropy ? Json(*final_entropy) : Json(nullptr)},
        {"minibatch", minibatch},
        {"target_steps", target_steps}}},
      {"distil", {{"weight", loss.distil}, {"tolerance", distil_tolerance}}},
      {"data", {{"text_field", text.text_field}, {"format", name_of(format_names, text.format)}}},
  };
  if (enforced) json["budgets"]["enforced"] = true;
  if (prior > 0) json["budgets"]["prior"] = prior;
  if (policy.surprisal) json["policy"]["surprisal"] = true;
  if (price_rate > 0) json["reward"]["price_rate"] = price_rate;
  if (advantage.spent_baseline) json["reward"]["spent_baseline"] = true;
  if (time) {
    json["budgets"] = {{"time", budget_json(*time)}};
    json["penalty"] = {{"time", advantage.penalty.time},
                       {"tolerance", advantage.penalty.tolerance}};
  }
  return json;
}

TrainingConfig load_training_config(
    const std::filesystem::path& path,
    const std::vector<std::pair<std::string, std::string>>& overrides) {
  YamlMap root = YamlMap::read(path);
  for (const auto& [key, value] : overrides) root.override_value(key, value);
  TrainingConfig config;
  read_into(root, config);
  try {
    config.validate();
  } catch (const FieldError& error) {
    fail("{}: {}", root.place(error.field), error.what());
  }
  return config;
}

}  // namespace sol
