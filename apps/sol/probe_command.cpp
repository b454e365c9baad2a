// sol probe: is there anything to win on this model, before training for it?
#include <memory>
#include <optional>

#include "base/fail.h"
#include "commands.h"
#include "evaluation/probe.h"
#include "evaluation_flags.h"
#include "validators.h"

namespace sol::app {
namespace {

struct ProbeFlags {
  EvaluationFlags evaluation;
  std::string kappa, rho, bits;  // levels to try
  std::optional<int> schedules;
  bool json = false;
};

ProbeLevels flagged_levels(const ProbeFlags& flags) {
  ProbeLevels levels;
  const auto shares = [](const std::string& text, const char* name, std::vector<float>& values) {
    if (text.empty()) return;
    values.clear();
    for (const double value : parse_axis_values(text, name)) {
      if (!(value > 0 && value <= 1)) fail("{}: a level of {} lies outside (0, 1]", name, value);
      values.push_back(static_cast<float>(value));
    }
  };
  shares(flags.kappa, "--kappa", levels.kappa);
  shares(flags.rho, "--rho", levels.rho);
  if (flags.bits.empty()) return levels;
  levels.bits.clear();
  for (const double value : parse_axis_values(flags.bits, "--bits")) {
    if (value != static_cast<int>(value) || value < 2 || value > 16)
      fail("--bits: a level of {} is not a whole number from 2 to 16", value);
    levels.bits.push_back(static_cast<int>(value));
  }
  return levels;
}

const char* axis_name(Axis axis) {
  return axis == Axis::kappa ? "kappa" : axis == Axis::rho ? "rho" : "bits";
}

double axis_level(const LevelCost& cost) {
  return cost.axis == Axis::kappa ? static_cast<double>(cost.action.kappa)
         : cost.axis == Axis::rho ? static_cast<double>(cost.action.rho)
                                  : cost.action.bits;
}

void print_tables(const AxisProbe& probe, const std::vector<OracleResult>& oracle, int schedules) {
  print("dense perplexity {:.3f}, one axis at a time:\n\n", probe.dense.perplexity);
  print("{:<6} {:>7} {:>12} {:>10} {:>20} {:>10}\n", "axis", "level", "perplexity", "relative",
        "nats/token", "attended");
  for (const LevelCost& cost : probe.levels)
    print("{:<6} {:>7.4g} {:>12.3f} {:>+9.1f}% {:>20} {:>9.1f}%\n", axis_name(cost.axis),
          axis_level(cost), cost.perplexity, 100 * cost.relative(),
          fmt::format("{:+.4f} +- {:.4f}", cost.increase, cost.standard_error),
          100 * cost.attended);
  if (oracle.empty()) {
    print(
        "\n(no oracle: name a controller with -c, or levels with --kappa-levels, --rho-levels, "
        "--bits-levels)\n");
    return;
  }
  print(
      "\nchoosing among {} random-matched schedules per block (it sees the text it is judged on, "
      "so part of the gain is luck):\n\n",
      schedules);
  print("{:<30} {:>9} {:>12} {:>22} {:>22}\n", "budget (keep, prune, bits)", "fixed", "random mean",
        "best single schedule", "oracle per block");
  for (const OracleResult& result : oracle)
    print(
        "{:<30} {:>9.3f} {:>12.3f} {:>22} {:>22}\n",
        fmt::format("{:.3f}, {:.3f}, {:.2f}", result.budget.kappa, result.budget.rho,
                    16.0 * result.budget.eta),
        result.fixed.perplexity, result.random_mean,
        fmt::format("{:.3f} ({:+.1f}%)", result.best_schedule, -100 * result.best_schedule_gain()),
        fmt::format("{:.3f} ({:+.1f}%)", result.oracle, -100 * result.oracle_gain()));
}

Json probe_json(const AxisProbe& probe, const std::vector<OracleResult>& oracle,
                const EvaluationSetup& setup, int schedules) {
  Json levels = Json::array(), budgets = Json::array();
  for (const LevelCost& cost : probe.levels)
    levels.push_back({{"axis", axis_name(cost.axis)},
                      {"level", axis_level(cost)},
                      {"action", to_string(cost.action)},
                      {"perplexity", cost.perplexity},
                      {"relative_increase", cost.relative()},
                      {"increase_nats_per_token", cost.increase},
                      {"standard_error", cost.standard_error},
                      {"attended", cost.attended}});
  for (const OracleResult& result : oracle)
    budgets.push_back({{"kappa", result.budget.kappa},
                       {"rho", result.budget.rho},
                       {"eta", result.budget.eta},
                       {"fixed_perplexity", result.fixed.perplexity},
                       {"random_mean_perplexity", result.random_mean},
                       {"best_single_schedule_perplexity", result.best_schedule},
                       {"best_single_schedule_gain", result.best_schedule_gain()},
                       {"oracle_perplexity", result.oracle},
                       {"oracle_gain", result.oracle_gain()}});
  Json json{{"dense_perplexity", probe.dense.perplexity},
            {"levels", levels},
            {"schedules", schedules},
            {"oracle", budgets},
            {"blocks", setup.blocks.size()}};
  json.update(setup.protocol_json());
  json["run"] = to_json(setup.run);
  return json;
}

void run_probe(ProbeFlags& flags) {
  const ProbeLevels levels = flagged_levels(flags);
  const EvaluationSetup setup = set_up_evaluation(flags.evaluation);
  setup.refuse_times("sol probe");
  if (flags.schedules) setup.require_space();
  const int schedules = flags.schedules.value_or(16);
  // The second part reuses the dense prefixes of the first as far as memory allows.
  BlockEvaluator evaluator(*setup.model, *setup.data, setup.blocks, setup.protocol, prefix_memory);
  const auto stop = interrupt_token();
  AxisProbe probe;
  {
    WorkProgress progress("axes");
    probe = probe_axes(
        evaluator, levels, [&](int64_t done, int64_t total) { progress.update(done, total); },
        stop);
  }
  std::vector<OracleResult> oracle;
  if (setup.space) {
    WorkProgress progress("schedules");
    oracle = probe_oracle(
        evaluator, *setup.space, oracle_budgets(*setup.space), schedules,
        flags.evaluation.model.seed,
        [&](int64_t done, int64_t total) { progress.update(done, total); }, stop);
  }
  if (flags.json)
    print("{}\n", to_text(probe_json(probe, oracle, setup, schedules), 2));
  else
    print_tables(probe, oracle, schedules);
}

}  // namespace

void add_probe_command(CLI::App& app) {
  auto flags = std::make_shared<ProbeFlags>();
  CLI::App* command = app.add_subcommand(
      "probe", "How much each axis hurts on this model, and what choosing schedules could win");
  add_evaluation_flags(*command, flags->evaluation);
  // It prints no times.
  command->remove_option(command->get_option("--costs"));
  const auto levels = [&](const char* name, std::string& value, const char* what) {
    command->add_option(name, value, what)->type_name("LIST");
  };
  levels("--kappa", flags->kappa, "Levels of κ to try, FROM:TO:STEP or a list");
  levels("--rho", flags->rho, "Levels of ρ to try");
  levels("--bits", flags->bits, "Bits to try");
  command
      ->add_option("--schedules", flags->schedules,
                   "K: random schedules the oracle picks from (default: 16)")
      ->check(in_range(1, 10000));
  command->add_flag("--json", flags->json, "Print JSON");
  command->callback([flags] { run_probe(*flags); });
}

}  // namespace sol::app
