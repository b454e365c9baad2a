// sol sweep: a policy against its baselines over a grid of budgets, with a report.
#include <algorithm>
#include <memory>
#include <set>

#include "base/fail.h"
#include "base/file_io.h"
#include "commands.h"
#include "evaluation/named_policy.h"
#include "evaluation/sweep_files.h"
#include "evaluation/sweep_tables.h"
#include "evaluation_flags.h"
#include "policy/axis.h"
#include "policy/network.h"
#include "validators.h"

namespace sol::app {
namespace {

struct SweepFlags {
  EvaluationFlags evaluation;
  std::string grid = "auto";
  std::string kappa, rho, bits, time;
  std::string policy;
  std::vector<std::string> baselines{"fixed"};
  std::string compare;  // "": both, or realised with a controller for times
  int bootstrap = 2000;
  std::filesystem::path out;
  bool store_frontier = false, timed = false;
};

GridRequest flagged_grid(const SweepFlags& flags) {
  GridRequest request;
  request.kind = flags.grid == "paper" ? GridRequest::Kind::paper : GridRequest::Kind::automatic;
  const auto axis = [](const std::string& text, const char* name,
                       std::optional<AxisValues>& values) {
    if (!text.empty()) values = parse_axis_values(text, name);
  };
  axis(flags.kappa, "--keep", request.kappa);
  axis(flags.rho, "--prune", request.rho);
  axis(flags.bits, "--bits", request.bits);
  axis(flags.time, "--time", request.time);
  return request;
}

std::string range_text(const BudgetRange& range) {
  return fmt::format("{:.4g}..{:.4g}", range.low, range.high);
}

void print_summary(const Sweep& sweep, const SweepSummary& summary) {
  print("\ndense perplexity {:.3f}; {} budgets, {} blocks, {}\n\n", sweep.dense.perplexity,
        sweep.points.size(), sweep.blocks.size(), format_duration(sweep.seconds));
  print("{:<16} {:<10} {:<8} {:>6} {:>10} {:>10} {:>11}  {:<19} {:>7} {:>9}\n", "against", "at",
        "points", "number", sweep.policy, "baseline", "difference", "95 % over blocks", "wins",
        "p *");
  for (const Comparison& row : summary.comparisons) {
    if (row.scope == Scope::all && !any_outside(sweep)) continue;
    const PairedTest& test = row.test;
    print("{:<16} {:<10} {:<8} {:>6} {:>10.3f} {:>10.3f} {:>+11.3f}  {:<19} {:>6.1f}% {:>9.1e}\n",
          row.baseline, compared_at_equal_averages(row) ? to_string(row.matching) : "its own",
          to_string(row.scope), test.n, test.policy.mean, test.baseline.mean, test.difference.mean,
          fmt::format("[{:+.3f}, {:+.3f}]", row.interval.low, row.interval.high),
          100 * test.win_rate, test.p);
  }
  print(
      "* paired t-test over budgets, as in the paper. They share their text, so it claims too "
      "much; the interval over blocks does not. net<=0.6: where {} spent a net keep-rate of {} at "
      "most.\n",
      sweep.policy, frugal_net_keep);
  print("\n");
  for (const Adherence& row : summary.adherence) {
    if (row.scope == Scope::all && !any_outside(sweep)) continue;
    if (row.by_time) {
      print("requests met within {} of the dense time ({}): {:.1f} %\n", Adherence::tolerance,
            to_string(row.scope), 100 * row.share[0]);
      continue;
    }
    print(
        "requests met within {} ({}): {:.1f} % on all axes; keep {:.1f} %, prune {:.1f} %, bits "
        "{:.1f} %\n",
        Adherence::tolerance, to_string(row.scope), 100 * row.all_axes_share, 100 * row.share[0],
        100 * row.share[1], 100 * row.share[2]);
  }
}

void store_frontier(const SweepFlags& flags, Controller& controller, const Sweep& sweep) {
  const auto checksum = [](const Controller& of) {
    return parameters_checksum(of.network().parameters());
  };
  if (checksum(Controller::load(flags.evaluation.controller)) != checksum(controller))
    fail("--store-frontier: {} holds another controller by now than the one that was swept",
         flags.evaluation.controller.string());
  const auto range = [](const std::vector<FrontierPoint>& points) {
    return fmt::format("{} points, net keep-rates {:.3f} to {:.3f}", points.size(),
                       points.front().net_keep, points.back().net_keep);
  };
  const std::vector<FrontierPoint> before = controller.settings().frontier;
  controller.set_frontier(dial_frontier(sweep));
  controller.save(flags.evaluation.controller);
  const auto& frontier = controller.settings().frontier;
  note("{}: stored a validation frontier of {}{}", flags.evaluation.controller.string(),
       range(frontier), before.empty() ? "" : ", in place of one of " + range(before));
}

// Of averages per axis, as -p fixed is asked for also beside a controller for times, whose
// outside_trained_ranges() judges a time.
bool within_ranges(const BudgetRanges& ranges, const ActionSpace& space, const Budget& budget) {
  return std::ranges::all_of(all_axes, [&](Axis axis) {
    return !space.on(axis) || ranges[axis].contains(value(budget, axis));
  });
}

void check_flags(const SweepFlags& flags) {
  std::set<std::string> baseline_names;
  for (const std::string& baseline : flags.baselines)
    if (!baseline_names.insert(baseline).second) fail("--baselines: {} is given twice", baseline);
  if (flags.compare == "requested" && baseline_names.contains(std::string(elsewhere_baseline)))
    fail("--baselines: {} has the policy's realised averages; leave out --compare requested",
         elsewhere_baseline);
  if (flags.store_frontier && flags.evaluation.controller.empty())
    fail("--store-frontier needs a controller to store it in: name its directory with -c");
  if (flags.store_frontier && !flags.policy.empty() && flags.policy != "learned")
    fail("--store-frontier stores what the learned policy does, not {}", flags.policy);
}

void run_sweep_command(SweepFlags& flags) {
  const GridRequest request = flagged_grid(flags);
  check_flags(flags);
  ensure_writable_directory(flags.out);
  ensure_writable_sweep(flags.out, evaluation_inputs(flags.evaluation));
  if (flags.store_frontier) ensure_writable_file(flags.evaluation.controller / "controller.json");

  EvaluationSetup setup = set_up_evaluation(flags.evaluation);
  setup.protocol.timed = flags.timed;
  const ActionSpace& space = setup.require_space();
  const Controller* controller = setup.controller_or_null();
  const BudgetRanges ranges = controller ? controller->settings().ranges : level_ranges(space);

  const uint64_t seed = flags.evaluation.model.seed;
  const PolicyParts parts = setup.policy_parts(flags.evaluation);
  std::string name = flags.policy;
  if (name.empty()) name = controller ? "learned" : "random-matched";
  if (!follows_budgets(name))
    fail("a sweep is over budgets, and policy {} does the same at every one: name it as a baseline",
         name);
  const auto policy = make_named_policy(name, parts);
  SweepRequest sweep_request;
  sweep_request.policy = policy.get();
  const auto baselines = add_baselines(
      sweep_request, flags.baselines,
      [&](const std::string& baseline) { return make_named_policy(baseline, parts); });
  const bool by_time = policy->costs() != nullptr;
  if (by_time && flags.store_frontier)
    fail("--store-frontier: a controller for times needs none, and takes no net keep-rates");
  if (flags.compare.empty() && by_time) flags.compare = "realised";
  sweep_request.match_realised = flags.compare != "requested";
  if (flags.compare == "realised") sweep_request.requested_baselines = 0;
  sweep_request.budgets = by_time ? make_time_grid(request, controller->settings().time)
                                  : make_budget_grid(request, space, ranges);
  for (const Budget& budget : sweep_request.budgets)
    sweep_request.inside.push_back(!controller ||
                                   (by_time == (controller->settings().costs != nullptr)
                                        ? controller->outside_trained_ranges(budget).empty()
                                        : within_ranges(ranges, space, budget)));

  BlockEvaluator evaluator(*setup.model, *setup.data, setup.blocks, setup.protocol, prefix_memory);
  WorkProgress progress(fmt::format("sweeping {} budgets", sweep_request.budgets.size()));
  const Sweep sweep = run_sweep(
      evaluator, sweep_request, [&](int64_t done, int64_t total) { progress.update(done, total); },
      interrupt_token());
  progress.finish();
  const SweepSummary summary = summarise(sweep, seed, flags.bootstrap);

  SweepSettings settings;
  settings.run = setup.run;
  settings.controller = setup.controller_name;
  settings.data = setup.data_name;
  settings.grid = by_time ? describe_time_grid(request, sweep_request.budgets)
                          : describe_grid(request, sweep_request.budgets);
  settings.blocks_available = setup.data->size();
  if (by_time)
    settings.trained_ranges =
        fmt::format("{} of the dense time", range_text(controller->settings().time));
  else if (controller)
    settings.trained_ranges = fmt::format("κ {}, ρ {}, η {}", range_text(ranges.kappa),
                                          range_text(ranges.rho), range_text(ranges.eta));
  print_summary(sweep, summary);  // first: the disk may have filled up meanwhile
  write_sweep(flags.out, sweep, summary, settings);
  print("\nreport: {}\n", (flags.out / "report.html").string());
  if (flags.store_frontier) store_frontier(flags, *setup.controller, sweep);
}

}  // namespace

void add_sweep_command(CLI::App& app) {
  auto flags = std::make_shared<SweepFlags>();
  CLI::App* command = app.add_subcommand(
      "sweep", "A policy against its baselines over a grid of budgets, with statistics and plots");
  add_evaluation_flags(*command, flags->evaluation);
  command
      ->add_option(
          "--grid", flags->grid,
          "Requested budgets: auto (at least 200 inside the trained ranges) or paper (567: "
          "keep 0.15..0.95, prune 0.4..1, 5..13 bits)")
      ->check(CLI::IsMember({"auto", "paper"}))
      ->capture_default_str();
  const auto axis = [&](const char* name, std::string& value, const char* what) {
    command->add_option(name, value, what)->type_name("VALUES");
  };
  axis("--keep,--kappa", flags->kappa, "Replaces the grid's values of κ: FROM:TO:STEP or a list");
  axis("--prune,--rho", flags->rho, "Replaces the grid's values of ρ");
  axis("--bits", flags->bits, "Replaces the grid's bits");
  axis("--time", flags->time,
       "With a controller for times: shares of the dense time (default: 24 in its trained range)");
  command
      ->add_option("-p,--policy", flags->policy,
                   "What is judged (default: learned with a controller, else random-matched)")
      ->type_name("NAME");
  command
      ->add_option(
          "--baselines", flags->baselines,
          "What it is judged against: fixed, emc, dac, random-matched, random-uniform, ..., and "
          "elsewhere, its own schedules on other blocks")
      ->delimiter(',')
      ->type_name("NAMES")
      ->capture_default_str();
  command
      ->add_option("--compare", flags->compare,
                   "Baselines at the policy's realised averages, at the requested budgets, or both "
                   "(default: both; realised with a controller for times)")
      ->check(CLI::IsMember({"realised", "requested", "both"}));
  command->add_option("--bootstrap", flags->bootstrap, "Draws of the bootstrap over blocks")
      ->check(in_range(100, 1000000))
      ->capture_default_str();
  command->add_flag("--store-frontier", flags->store_frontier,
                    "Store the Pareto points in the controller, for `sol generate --budget`; use "
                    "validation text");
  command
      ->add_flag("--timed", flags->timed,
                 "Decode every sequence alone and measure milliseconds per token, policy and "
                 "refresh included; the report plots perplexity against them")
      ->excludes("--batch");
  command
      ->add_option("-o,--out", flags->out,
                   "Directory of the results; only an older sweep's are replaced")
      ->type_name("DIR")
      ->required();
  command->callback([flags] { run_sweep_command(*flags); });
}

}  // namespace sol::app
