// sol generate: text with a budget dial.
#include <algorithm>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/fail.h"
#include "commands.h"
#include "common.h"
#include "evaluation_flags.h"
#include "policy/cost_table.h"
#include "policy/generation.h"
#include "policy/policies.h"
#include "policy/stop_strings.h"
#include "sol/controller.h"
#include "validators.h"

namespace sol::app {
namespace {

struct GenerateFlags {
  ModelFlags model;
  SequenceFlags sequence;
  std::optional<std::string> prompt;
  GenerationOptions options;
  std::vector<std::string> stops;
  std::string fixed;
  std::filesystem::path controller;
  BudgetFlags budget;
  std::optional<int> horizon;
  std::string refresh = "on";
  bool no_bos = false;
};

// Who picks the actions, and at which budget.
struct Plan {
  std::optional<Controller> controller;
  std::unique_ptr<Policy> policy;
  Budget budget;
  SequenceOptions sequence;
  int horizon = 16;
  bool timed = false;  // the budget is a time
};

Plan plan_generation(const GenerateFlags& flags, const FrozenModel& model) {
  Plan plan;
  plan.sequence = flags.sequence.get();
  if (flags.controller.empty()) {
    const Action action = flags.fixed.empty() ? Action{} : parse_action(flags.fixed);
    plan.policy = make_constant_policy(action);
    plan.budget = {action.kappa, action.rho, action.eta()};
  } else {
    plan.controller = load_flagged_controller(flags.controller, flags.model, model);
    const ControllerSettings& settings = plan.controller->settings();
    plan.policy = plan.controller->greedy_policy(flags.model.deterministic);
    plan.timed = settings.costs != nullptr;
    // Here for the errors; each episode's own length decides about a time.
    plan.budget = plan.timed
                      ? flagged_time(flags.budget, *plan.controller, 1)
                      : flagged_budget(flags.budget, &*plan.controller, &plan.controller->space());
    plan.horizon = settings.horizon;
    // The features depend on sinks and window, and the policy was trained with these pages.
    plan.sequence = settings.sequence;
    const std::string outside = plan.controller->outside_trained_ranges(plan.budget);
    if (!outside.empty() && !flags.budget.ms) note("note: {}", outside);
  }
  if (flags.horizon && plan.timed && *flags.horizon != plan.horizon)
    fail("--horizon {}: this controller's table of times is for episodes of {} steps",
         *flags.horizon, plan.horizon);
  if (flags.horizon) plan.horizon = *flags.horizon;
  if (const int positions = model.config().max_position_embeddings; plan.horizon > positions)
    fail("--horizon {}: the model has only {} positions", plan.horizon, positions);
  return plan;
}

// By the controller's table, at the middle of what was generated.
double table_ms(const GenerationResult& result, const Plan& plan, double share) {
  const auto middle = result.prompt_tokens + static_cast<int64_t>(result.tokens.size()) / 2;
  return plan.controller->settings().costs->share_ms(share, static_cast<int>(middle));
}

void report(const GenerationResult& result, const Plan& plan, const std::optional<double>& ms) {
  const auto share = [&](double seconds) {
    return result.total_seconds > 0 ? 100.0 * seconds / result.total_seconds : 0.0;
  };
  note("---");
  note("prompt     {} tokens in {:.2f} s", result.prompt_tokens, result.prefill_seconds);
  note("generated  {} tokens in {:.2f} s ({})", result.tokens.size(), result.total_seconds,
       to_string(result.finish));
  if (result.steps == 0) return;
  note("speed      {:.1f} tokens/s; the model reads {:.2f} GB/s while it runs",
       result.steps / result.total_seconds,
       static_cast<double>(result.bytes) / 1e9 / result.times.model_seconds);
  if (!plan.timed) note("requested  {}", budget_text(plan.budget));
  if (plan.timed)
    note("requested  {:.3f} of the dense time, by the cost table{}", result.requested_time,
         ms ? fmt::format("; {:.3g} ms per token were asked for", *ms) : "");
  if (plan.timed && result.effective_steps > 0)
    note(
        "realised   {:.3f} of the dense time; {:.3g} ms per token by the cost table, refresh "
        "included",
        result.realised_time, table_ms(result, plan, result.realised_time));
  if (result.effective_steps > 0)
    note("realised   {}{}  ({} of {} steps count)", budget_text(result.realised),
         plan.controller
             ? fmt::format("  net {:.3f}", plan.controller->space().net_keep_rate(result.realised))
             : "",
         result.effective_steps, result.steps);
  else
    note("realised   dense: the text is still too short for anything to be saved");
  note("attended   {:.1f} % of the cached keys", 100.0 * result.attended);
  note("time       model {:.1f} %, policy {:.1f} %, refresh {:.1f} % ({} refreshes)",
       share(result.times.model_seconds), share(result.times.policy_seconds),
       share(result.refresh_seconds), result.refreshes);
}

void run_generate(GenerateFlags& flags) {
  const std::unique_ptr<FrozenModel> model = load_flagged_model(flags.model);
  const auto tokenizer = load_flagged_tokenizer(flags.model, *model);
  const Plan plan = plan_generation(flags, *model);
  GenerationOptions options = flags.options;
  options.sequence = plan.sequence;
  options.budget = plan.budget;
  if (flags.budget.ms)
    options.budget_at = [&](int keys) {
      return flagged_time(flags.budget, *plan.controller, keys);
    };
  options.horizon = plan.horizon;
  options.refresh = flags.refresh == "on";
  options.make_up = plan.controller.has_value();
  options.sampling.seed = flags.model.seed;

  const std::string prompt = flags.prompt ? *flags.prompt : read_standard_input();
  std::vector<int32_t> ids = tokenizer->encode(prompt, {.add_special_tokens = !flags.no_bos});

  if (flags.budget.ms) {
    const int keys = std::max(1, static_cast<int>(ids.size()));
    if (const std::string why = unreachable_ms(*flags.budget.ms, *plan.controller, keys);
        !why.empty())
      note("note: {}", why);
  }

  StopStrings stops(flags.stops);
  const std::unique_ptr<Tokenizer::Stream> stream = tokenizer->stream();
  const auto on_token = [&](int32_t token) {
    // A model may have more tokens than its tokenizer: such a one is no text.
    if (tokenizer->has_token(token)) write_output(stops.push(stream->push(token)));
    return !stops.met();
  };
  GenerationResult result =
      generate(*model, *plan.policy, std::move(ids), options, on_token, interrupt_token());
  write_output(stops.push(stream->finish()));
  write_output(stops.finish() + "\n");
  // A character that the end cut off may complete a stop text.
  if (stops.met() && result.finish != FinishReason::cancelled)
    result.finish = FinishReason::stopped;
  if (result.finish == FinishReason::context_end)
    note("note: the model's context of {} tokens is full", model->config().max_position_embeddings);
  report(result, plan, flags.budget.ms);
  if (result.finish == FinishReason::cancelled) throw Cancelled();
}

void add_sampling_options(CLI::App& command, GenerateFlags& flags) {
  SamplingOptions& sampling = flags.options.sampling;
  command
      .add_option("-n,--max-tokens", flags.options.max_tokens,
                  "How many tokens to generate; -1 for as many as the context holds")
      ->check(in_range(-1, std::numeric_limits<int>::max()))
      ->capture_default_str();
  command.add_option("--temperature", sampling.temperature, "0 for the likeliest token, always")
      ->check(number_in(0, 1e6))
      ->capture_default_str();
  command
      .add_option("--top-p", sampling.top_p, "Only the fewest likeliest tokens that reach this sum")
      ->check(number_in(0, 1))
      ->capture_default_str();
  command.add_option("--top-k", sampling.top_k, "Only the k likeliest tokens; 0 for all")
      ->check(at_least(0))
      ->capture_default_str();
  command.add_option("--stop", flags.stops, "Stop before this text; may be given several times")
      ->type_name("TEXT")
      ->allow_extra_args(false);
  command.add_flag("--ignore-end", flags.options.ignore_end, "Go on after an end-of-text token");
  command.add_flag("--no-bos", flags.no_bos, "Do not put the begin token before the prompt");
}

void add_budget_options(CLI::App& command, GenerateFlags& flags) {
  CLI::Option* fixed =
      command.add_option("--fixed", flags.fixed, "One action for every step, such as k050-s070-q8")
          ->type_name("ACTION");
  CLI::Option* controller =
      command.add_option("-c,--controller", flags.controller, "A trained controller")
          ->type_name("DIR")
          ->excludes(fixed);
  add_budget_flags(command, flags.budget);
  for (const char* name : {"--keep", "--prune", "--bits"})
    command.get_option(name)->needs(controller);
  command
      .add_option("--horizon", flags.horizon,
                  "Steps of an episode, after which the cache is refreshed (default: the "
                  "controller's, else 16)")
      ->check(at_least(1));
  command.add_option("--refresh", flags.refresh, "Recompute the cache after each episode: on, off")
      ->check(CLI::IsMember({"on", "off"}))
      ->capture_default_str();
}

}  // namespace

void add_generate_command(CLI::App& app) {
  auto flags = std::make_shared<GenerateFlags>();
  flags->options.max_tokens = 128;
  CLI::App* command = app.add_subcommand(
      "generate",
      "Text from a prompt: dense, under one fixed action, or under a controller's budget");
  command->add_option("prompt", flags->prompt, "The prompt (default: standard input)");
  add_model_flags(*command, flags->model);
  add_seed_flag(*command, flags->model);
  add_sampling_options(*command, *flags);
  add_budget_options(*command, *flags);
  add_sequence_flags(*command, flags->sequence, command->get_option("--controller"));
  command->callback([flags] { run_generate(*flags); });
}

}  // namespace sol::app
