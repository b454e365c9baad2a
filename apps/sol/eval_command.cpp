// sol eval: one policy at one budget.
#include <memory>
#include <numeric>

#include "base/fail.h"
#include "base/output_file.h"
#include "commands.h"
#include "evaluation/named_policy.h"
#include "evaluation/schedule_file.h"
#include "evaluation/sweep.h"
#include "evaluation_flags.h"
#include "policy/action_json.h"
#include "validators.h"

namespace sol::app {
namespace {

struct EvalFlags {
  EvaluationFlags evaluation;
  BudgetFlags budget;
  std::string policy;
  uint32_t rollout = 0;
  bool json = false;
  std::filesystem::path schedule_out, replay;
};

// A record of its own protocol and blocks: the data must be cut as it was.
EvaluationSetup set_up_replay(EvalFlags& flags, const ScheduleRecord& record) {
  EvaluationFlags evaluation = flags.evaluation;
  evaluation.context = record.context;
  evaluation.horizon = record.horizon;
  evaluation.blocks.reset();
  EvaluationSetup setup = set_up_evaluation(evaluation);
  setup.protocol.sequence = record.sequence;
  require_same_source(record, *setup.model, *setup.data);
  setup.blocks.clear();
  for (const RecordedBlock& block : record.blocks) setup.blocks.push_back(block.block);
  return setup;
}

// What a policy spends that chooses all actions alike, or has one only.
Budget mean_of_actions(const ActionSpace& space) {
  const auto mean = [](const std::vector<float>& levels) {
    return std::accumulate(levels.begin(), levels.end(), 0.0f) / static_cast<float>(levels.size());
  };
  return {mean(space.levels(Axis::kappa)), mean(space.levels(Axis::rho)),
          mean(space.levels(Axis::eta))};
}

void print_text(const Outcome& outcome, const std::string& policy, const EvaluationSetup& setup) {
  print("policy      {}\n", policy);
  print("perplexity  {:.4f}  ({} blocks of {} steps after {} tokens)\n", outcome.perplexity,
        setup.blocks.size(), setup.protocol.horizon, setup.protocol.context);
  print("requested   {}\n", request_text(outcome.asked, outcome.asked_time));
  print("realised    {}  (net keep-rate {:.4f})\n", budget_text(outcome.realised),
        outcome.net_keep);
  if (setup.protocol.costs)
    print("time        {:.4f} of the dense time, refresh not included\n", outcome.time);
  print("attended    {:.2f} % of the keys\n", 100 * outcome.attended);
}

Json result_json(const Outcome& outcome, const std::string& policy, const EvaluationSetup& setup,
                 const std::string& outside) {
  Json json = {
      {"policy", policy},
      {"perplexity", outcome.perplexity},
      {"nll_nats_per_token", outcome.nats_per_token()},
      {"requested", outcome.asked_time ? Json{{"time", shortest_decimal(outcome.asked.kappa)}}
                                       : budget_to_json(outcome.asked)},
      {"realised", budget_to_json(outcome.realised)},
      {"net_keep", outcome.net_keep},
      {"attended", outcome.attended},
      {"blocks", outcome.nll.size()},
      {"steps", outcome.steps},
      {"effective_steps", outcome.effective_steps}};
  json.update(setup.protocol_json());
  if (setup.protocol.costs) json["realised_time"] = outcome.time;
  if (!outside.empty()) json["outside_trained_ranges"] = outside;
  return json;
}

// What is evaluated.
struct Judged {
  std::string name;
  std::unique_ptr<Policy> policy;
  Budget budget;
};

Judged choose_policy(const EvalFlags& flags, const EvaluationSetup& setup) {
  Judged judged;
  judged.name = flags.policy;
  if (judged.name.empty()) judged.name = setup.controller ? "learned" : "dense";
  const std::string& name = judged.name;
  if (mixes_levels(name)) setup.require_space();
  judged.policy = make_named_policy(name, setup.policy_parts(flags.evaluation));
  if (flags.rollout > 0 && !name.starts_with("random-"))
    fail("--rollout chooses among schedules of a random policy; {} has only one", name);
  if (judged.policy->costs()) {
    if (!flags.schedule_out.empty())
      fail("--schedule-out: schedules of a controller for times cannot be recorded yet");
    judged.budget = flagged_time(flags.budget, *setup.controller,
                                 setup.protocol.context + setup.protocol.horizon / 2);
    if (!flags.budget.any()) note("note: no time is asked for, so it may take the dense one");
  } else if (follows_budgets(name)) {
    judged.budget = flagged_budget(flags.budget, setup.controller_or_null(),
                                   setup.space ? &*setup.space : nullptr);
    if (!flags.budget.any()) note("note: no budget is asked for, so every axis has its densest");
  } else {
    if (flags.budget.any())
      fail(
          "policy {} does the same at every budget; leave out --budget, --keep, --prune, --bits, "
          "or choose another with -p",
          name);
    judged.budget = mean_of_actions(judged.policy->space());
  }
  return judged;
}

Judged choose_recorded(const ScheduleRecord& record) {
  return {fmt::format("replay of {}", record.policy), make_recorded_policy(record), record.budget};
}

void run_eval(EvalFlags& flags) {
  if (!flags.schedule_out.empty()) {
    std::vector<std::filesystem::path> inputs = evaluation_inputs(flags.evaluation);
    inputs.push_back(flags.replay);
    ensure_writable_output(flags.schedule_out, schedule_file_kind(), inputs);
  }
  const EvaluationFlags& given = flags.evaluation;
  if (flags.policy.empty() && given.controller.empty() &&
      !(given.kappa_levels.empty() && given.rho_levels.empty() && given.bits_levels.empty()))
    fail("name with -p the policy that chooses among these levels; without one, eval is dense");
  std::optional<ScheduleRecord> record;
  if (!flags.replay.empty()) record = read_schedules(flags.replay);
  EvaluationSetup setup =
      record ? set_up_replay(flags, *record) : set_up_evaluation(flags.evaluation);
  const auto [name, policy, budget] =
      record ? choose_recorded(*record) : choose_policy(flags, setup);

  std::string outside;
  if (setup.controller && name == "learned")
    outside = setup.controller->outside_trained_ranges(budget);
  if (!outside.empty()) note("note: {}", outside);

  BlockEvaluator evaluator(*setup.model, *setup.data, setup.blocks, setup.protocol);
  WorkProgress progress("evaluating");
  const Arm arm{policy.get(), budget, flags.rollout};
  const bool keep = record || !flags.schedule_out.empty();
  const auto results = evaluator.run(
      std::span(&arm, 1), keep, [&](int64_t done, int64_t total) { progress.update(done, total); },
      interrupt_token());
  progress.finish();

  const ActionSpace& space = setup.space && !record ? *setup.space : policy->space();
  Outcome outcome = make_outcome(budget, results[0], space);
  outcome.asked_time = policy->costs() != nullptr;
  Json json = result_json(outcome, name, setup, outside);
  if (record) json["largest_log_prob_difference"] = largest_difference(*record, results[0]);
  if (flags.json) {
    json["run"] = to_json(setup.run);
    print("{}\n", to_text(json, 2));
  } else {
    print_text(outcome, name, setup);
    if (record)
      print("replay      log-probabilities differ from the recorded ones by {:.3g} nats at most\n",
            largest_difference(*record, results[0]));
  }
  // Last: the disk may be full, and the figures are there.
  if (!flags.schedule_out.empty())
    write_schedules(flags.schedule_out, make_schedule_record(*policy, budget, *setup.model,
                                                             *setup.data, evaluator, results[0]));
}

}  // namespace

void add_eval_command(CLI::App& app) {
  auto flags = std::make_shared<EvalFlags>();
  CLI::App* command =
      app.add_subcommand("eval", "Perplexity and realised budgets of one policy at one budget");
  add_evaluation_flags(*command, flags->evaluation);
  add_budget_flags(*command, flags->budget);
  command
      ->add_option("-p,--policy", flags->policy,
                   "dense, learned, fixed, fixed-reference, emc, dac, dac-reference, "
                   "random-matched, random-uniform, or an action such as "
                   "k050-s070-q8 (default: learned with a controller, else dense)")
      ->type_name("NAME");
  command->add_option("--rollout", flags->rollout, "Which schedule of a random policy")
      ->check(in_range(0, (1 << 24) - 1))
      ->capture_default_str();
  command->add_flag("--json", flags->json, "Print JSON");
  command
      ->add_option("--schedule-out", flags->schedule_out,
                   "Record the schedule of every block; replaces only an older record")
      ->type_name("FILE");
  CLI::Option* replay =
      command
          ->add_option("--replay", flags->replay,
                       "Play recorded schedules, on the blocks and with the protocol they name")
          ->type_name("FILE");
  // What the record decides.
  for (const char* name :
       {"--policy",      "--rollout", "--budget",    "--keep",         "--prune",
        "--bits",        "--blocks",  "--horizon",   "--kappa-levels", "--rho-levels",
        "--bits-levels", "--context", "--page-size", "--sinks",        "--window",
        "--no-sinks",    "--time",    "--ms",        "--controller",   "--costs"})
    replay->excludes(command->get_option(name));
  command->callback([flags] { run_eval(*flags); });
}

}  // namespace sol::app
