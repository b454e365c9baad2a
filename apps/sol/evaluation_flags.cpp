#include "evaluation_flags.h"

#include <fmt/ranges.h>

#include <limits>
#include <numeric>

#include "base/fail.h"
#include "cost_file.h"
#include "policy/action_json.h"
#include "policy/axis.h"
#include "validators.h"

namespace sol::app {
namespace {

std::vector<float> float_levels(const std::string& text, const std::string& axis) {
  std::vector<float> levels;
  for (const double value : parse_axis_values(text, axis))
    levels.push_back(static_cast<float>(value));
  return levels;
}

std::vector<int> bits_levels(const std::string& text) {
  std::vector<int> levels;
  for (const double value : parse_axis_values(text, "--bits-levels")) {
    if (value != static_cast<int>(value)) fail("--bits-levels: {} is not a whole number", value);
    levels.push_back(static_cast<int>(value));
  }
  return levels;
}

std::optional<ActionSpace> flagged_space(const EvaluationFlags& flags) {
  if (flags.kappa_levels.empty() && flags.rho_levels.empty() && flags.bits_levels.empty())
    return std::nullopt;
  // An axis that is not named is off: dense.
  return ActionSpace(
      flags.kappa_levels.empty() ? std::vector<float>{1.0f}
                                 : float_levels(flags.kappa_levels, "--kappa-levels"),
      flags.rho_levels.empty() ? std::vector<float>{1.0f}
                               : float_levels(flags.rho_levels, "--rho-levels"),
      flags.bits_levels.empty() ? std::vector<int>{16} : bits_levels(flags.bits_levels));
}

}  // namespace

void add_policy_flags(CLI::App& command, EvaluationFlags& flags) {
  add_model_flags(command, flags.model);
  add_seed_flag(command, flags.model);
  CLI::Option* controller =
      command.add_option("-c,--controller", flags.controller, "A trained controller")
          ->type_name("DIR");
  const auto levels = [&](const char* name, std::string& value, const char* what) {
    command.add_option(name, value, what)->type_name("LIST")->excludes(controller);
  };
  levels("--kappa-levels", flags.kappa_levels, "Levels of κ, such as 0.1,1 (default: only 1)");
  levels("--rho-levels", flags.rho_levels, "Levels of ρ, such as 0.3,1 (default: only 1)");
  levels("--bits-levels", flags.bits_levels, "Levels of the bits, such as 3,16 (default: only 16)");
  command
      .add_option("--horizon", flags.horizon,
                  "Steps of an episode (default: the controller's, "
                  "else 16)")
      ->check(at_least(1));
  command.add_option("--batch", flags.batch, "Sequences decoded together")
      ->check(in_range(1, 1 << 16))
      ->capture_default_str();
  add_sequence_flags(command, flags.sequence, controller);
}

void add_evaluation_flags(CLI::App& command, EvaluationFlags& flags) {
  add_policy_flags(command, flags);
  command
      .add_option("--data", flags.data,
                  "Text: .txt, .jsonl or .raw, also as .gz or .zst; repeatable")
      ->type_name("FILE")
      ->required();
  command
      .add_option("--format", flags.format,
                  "How plain text is cut: documents (ended by a line <|endoftext|>) or wikitext "
                  "(each line)")
      ->check(CLI::IsMember({"documents", "wikitext"}))
      ->capture_default_str();
  command.add_option("--text-field", flags.text_field, "Field of .jsonl lines")
      ->capture_default_str();
  command
      .add_option("--costs", flags.costs,
                  "Count every policy's time by this table, which `sol calibrate` measured")
      ->type_name("FILE");
  command.add_option("--cache", flags.cache, "Keep the tokenised text in this directory")
      ->type_name("DIR");
  command.add_option("--blocks", flags.blocks, "Only the first N blocks (default: all)")
      ->check(in_range(1, std::numeric_limits<int64_t>::max()))
      ->type_name("N");
  command.add_option("--context", flags.context, "Tokens of dense context before the steps")
      ->check(at_least(1))
      ->capture_default_str();
}

PolicyParts EvaluationSetup::policy_parts(const EvaluationFlags& flags) const {
  PolicyParts parts;
  if (space) parts.space = *space;
  parts.controller = controller_or_null();
  parts.seed = flags.model.seed;
  parts.deterministic = flags.model.deterministic;
  parts.vocab_size = model->config().vocab_size;
  parts.sequences = static_cast<int64_t>(blocks.size());
  return parts;
}

const ActionSpace& EvaluationSetup::require_space() const {
  if (!space)
    fail(
        "there are no levels to choose from: name a controller with -c, or levels with "
        "--kappa-levels, --rho-levels, --bits-levels");
  return *space;
}

void EvaluationSetup::refuse_times(const std::string& command) const {
  if (controller && controller->settings().costs)
    fail(
        "{}: a controller that was trained for times cannot be used with {} yet; `sol generate`, "
        "`sol serve`, `sol eval` and `sol sweep` can",
        controller_name, command);
}

Json EvaluationSetup::protocol_json() const {
  Json json{{"context", protocol.context}, {"horizon", protocol.horizon}};
  json.update(to_json(protocol.sequence));
  json["data"] = data_name;
  json["controller"] = controller_name;
  return json;
}

std::vector<std::filesystem::path> evaluation_inputs(const EvaluationFlags& flags) {
  std::vector<std::filesystem::path> inputs = flags.data;
  inputs.insert(inputs.end(), {flags.costs, flags.controller, flags.model.model_dir()});
  return inputs;
}

void require_model(const Controller& controller, const ModelFlags& flags,
                   const FrozenModel& model) {
  controller.require_model(model.fingerprint(), flags.model_dir().string());
  if (const std::string unlike = controller.unlike_training(model.outside_paper()); !unlike.empty())
    note("note: {}", unlike);
}

Controller load_flagged_controller(const std::filesystem::path& dir, const ModelFlags& flags,
                                   const FrozenModel& model) {
  Controller controller = Controller::load(dir);
  require_model(controller, flags, model);
  return controller;
}

EvaluationSetup set_up_policies(const EvaluationFlags& flags) {
  EvaluationSetup setup;
  setup.protocol.sequence = flags.sequence.get();
  setup.protocol.batch = flags.batch;
  setup.space = flagged_space(flags);
  if (!flags.controller.empty()) {
    setup.controller = Controller::load(flags.controller);
    setup.controller_name = file_name(flags.controller);
    const ControllerSettings& settings = setup.controller->settings();
    setup.space = setup.controller->space();
    setup.protocol.horizon = settings.horizon;
    setup.protocol.sequence = settings.sequence;
  }
  if (flags.horizon) setup.protocol.horizon = *flags.horizon;

  const std::filesystem::path dir = flags.model.model_dir();
  setup.model = load_flagged_model(flags.model);
  if (setup.controller) require_model(*setup.controller, flags.model, *setup.model);
  if (setup.controller) setup.protocol.costs = setup.controller->settings().costs;
  if (setup.protocol.costs && setup.protocol.horizon != setup.controller->settings().horizon)
    fail("this controller's table of times is for episodes of {} steps: leave out --horizon",
         setup.controller->settings().horizon);
  if (!flags.costs.empty()) {
    if (setup.protocol.costs)
      fail("--costs: this controller has the table it was trained with, which counts");
    setup.protocol.costs = std::make_shared<const CostTable>(read_costs_of_model(
        flags.costs, *setup.model, setup.protocol.horizon, setup.protocol.sequence));
  }
  setup.run = describe_run(*setup.model, file_name(dir), flags.model.seed, command_line());
  return setup;
}

EvaluationSetup set_up_evaluation(const EvaluationFlags& flags) {
  EvaluationSetup setup = set_up_policies(flags);
  setup.protocol.context = flags.context;
  check_protocol(setup.protocol, setup.model->config());
  const auto tokenizer = load_flagged_tokenizer(flags.model, *setup.model);

  TextOptions text;
  text.text_field = flags.text_field;
  text.format =
      flags.format == "wikitext" ? TextOptions::Format::wikitext : TextOptions::Format::documents;
  setup.data = BlockDataset::open(flags.data, text, *tokenizer, setup.protocol.block_length(),
                                  flags.cache, interrupt_token());
  std::vector<std::string> names;
  for (const auto& path : flags.data) names.push_back(file_name(path));
  setup.data_name = fmt::format("{}", fmt::join(names, ", "));

  const int64_t count = flags.blocks.value_or(setup.data->size());
  if (count > setup.data->size())
    fail("--blocks {}: {} holds only {} blocks of {} ids", count, setup.data_name,
         setup.data->size(), setup.protocol.block_length());
  setup.blocks.resize(static_cast<size_t>(count));
  std::iota(setup.blocks.begin(), setup.blocks.end(), int64_t{0});
  return setup;
}

void add_budget_flags(CLI::App& command, BudgetFlags& flags) {
  const CLI::Validator share = number_in(0, 1);
  CLI::Option* net = command
                         .add_option("--budget", flags.net_keep,
                                     "Net keep-rate, turned into the three budgets by the "
                                     "controller's validation frontier")
                         ->check(share)
                         ->type_name("NET")
                         ->needs(command.get_option("--controller"));
  command.add_option("--keep", flags.keep, "Budget: mean share of cached tokens attended to")
      ->check(share)
      ->excludes(net);
  command.add_option("--prune", flags.prune, "Budget: mean share of MLP input channels used")
      ->check(share)
      ->excludes(net);
  command.add_option("--bits", flags.bits, "Budget: mean bits of the MLP's output")
      ->check(number_in(0, 16))
      ->excludes(net);
  CLI::Option* time =
      command
          .add_option("--time", flags.time,
                      "Of a controller for times: mean share of a dense step's time")
          ->check(number_in(0.001, 1))
          ->type_name("SHARE")
          ->needs(command.get_option("--controller"));
  command
      .add_option("--ms", flags.ms,
                  "Of a controller for times: milliseconds per token, by the table that it was "
                  "trained with, refresh included")
      ->check(positive_number())
      ->needs(command.get_option("--controller"))
      ->excludes(time);
}

Budget flagged_budget(const BudgetFlags& flags, const Controller* controller,
                      const ActionSpace* space) {
  if (flags.time || flags.ms)
    fail("{} needs a controller that was trained for times (sol train --costs)",
         flags.time ? "--time" : "--ms");
  if (flags.net_keep) {
    try {
      return controller->budget_for_net_keep(*flags.net_keep);
    } catch (const Error& error) {
      fail("--budget: {}; --keep, --prune and --bits name the three budgets one by one",
           error.what());
    }
  }
  Budget budget;  // what is not asked to be saved is dense
  if (flags.keep) budget.kappa = static_cast<float>(*flags.keep);
  if (flags.prune) budget.rho = static_cast<float>(*flags.prune);
  if (flags.bits) budget.eta = static_cast<float>(*flags.bits / 16.0);
  if (!space) return budget;
  const Budget possible = space->clamp_off_axes(budget);
  const auto check = [&](bool asked, const char* flag, Axis axis) {
    if (asked && value(possible, axis) != value(budget, axis))
      fail("{}: there is nothing to choose on this axis, which stays at {}", flag,
           axis == Axis::eta ? fmt::format("{} bits", space->bits().front())
                             : fmt::format("{}", value(possible, axis)));
  };
  check(flags.keep.has_value(), "--keep", Axis::kappa);
  check(flags.prune.has_value(), "--prune", Axis::rho);
  check(flags.bits.has_value(), "--bits", Axis::eta);
  return possible;
}

Budget flagged_time(const BudgetFlags& flags, const Controller& controller, int keys) {
  if (flags.shares())
    fail(
        "this controller was trained for times: ask it for one with --ms or --time, not for "
        "shares (--budget, --keep, --prune, --bits)");
  if (flags.ms) return controller.budget_for_ms(*flags.ms, keys);
  return time_budget(static_cast<float>(flags.time.value_or(1.0)));
}

std::string unreachable_ms(double ms, const Controller& controller, int keys) {
  constexpr double rounding = 1.005;
  const CostTable& costs = *controller.settings().costs;
  const double share = controller.budget_for_ms(ms, keys).kappa;
  const double given = costs.share_ms(share, keys), dense = costs.dense_ms(keys);
  if (given > ms * rounding)
    return fmt::format(
        "{:.3g} ms per token are less than this controller can take with {} tokens in the cache: "
        "{:.3g} ms, {:.3f} of the dense time, by its cost table",
        ms, keys, given, share);
  if (dense * rounding < ms)
    return fmt::format(
        "{:.3g} ms per token are more than a dense token takes with {} tokens in the cache: "
        "{:.3g} ms by the cost table; nothing is saved",
        ms, keys, dense);
  return {};
}

std::string request_text(const Budget& budget, bool time) {
  return time ? fmt::format("{:.3f} of the dense time", budget.kappa) : budget_text(budget);
}

std::string budget_text(const Budget& budget) {
  return fmt::format("keep {:.3f}  prune {:.3f}  bits {:.2f}", budget.kappa, budget.rho,
                     16.0 * budget.eta);
}

void WorkProgress::update(int64_t done, int64_t total) {
  if (!since_first_) {
    since_first_.emplace();
    first_ = done;
  }
  const double share = total > 0 ? static_cast<double>(done) / static_cast<double>(total) : 0;
  const double left = done > first_ ? since_first_->seconds() / static_cast<double>(done - first_) *
                                          static_cast<double>(total - done)
                                    : -1;
  line_.update(fmt::format("{}  {:.0f} %  {} left", doing_, 100 * share, format_duration(left)));
}

}  // namespace sol::app
