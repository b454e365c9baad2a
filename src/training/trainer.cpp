#include "training/trainer.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/fail.h"
#include "base/file_io.h"
#include "base/hash.h"
#include "base/output_file.h"
#include "base/shown_text.h"
#include "base/stopwatch.h"
#include "engine/run_info.h"
#include "model/model_directory.h"
#include "policy/axis.h"
#include "policy/policies.h"
#include "training/checkpoint.h"
#include "training/collection.h"
#include "training/data_order.h"
#include "training/initialisation.h"
#include "training/rank_agreement.h"
#include "training/run_log.h"
#include "training/update.h"

namespace sol {
namespace {

namespace fs = std::filesystem;
// Tells data sets apart without reading gigabytes: a hash over up to 4096 blocks spread over all.
std::string data_identity(const BlockDataset& data) {
  Hash128 hash;
  const int64_t count = std::min<int64_t>(data.size(), 4096);
  for (int64_t i = 0; i < count; ++i)
    hash.add(std::as_bytes(data.unverified_block(i * data.size() / count)));
  return hash.hexadecimal();
}

// Of a configuration's settings those that must agree. A run may be prolonged.
Json settings_identity(Json settings, bool depends_on_length) {
  settings.erase("name");
  settings.erase("model");
  if (!depends_on_length) settings["optimisation"].erase("updates");
  return settings;
}

// What must agree between a checkpoint and the run that resumes it.
Json run_identity(const FrozenModel& model, const BlockDataset& data, const TrainingConfig& config,
                  const TrainerOptions& options) {
  Json identity{{"config", settings_identity(config.to_json(), config.depends_on_length())},
                {"model_fingerprint", model.fingerprint()},
                {"precision", to_string(model.precision())},
                {"data", {{"blocks", data.size()}, {"sample", data_identity(data)}}}};
  if (options.costs) identity["costs"] = options.costs->to_json();
  if (options.deterministic) identity["deterministic"] = true;
  if (model.weight_format() != WeightFormat::automatic)
    identity["weights"] = std::string(weights_name(model));
  if (const auto outside = model.outside_paper(); !outside.empty())
    identity["outside_paper"] = outside;
  return identity;
}

AdamWOptions optimiser_options(const TrainingConfig& config) {
  AdamWOptions options = config.optimiser;
  options.decay_steps = config.updates;
  return options;
}

fs::path checkpoint_path(const fs::path& out) {
  return out / "checkpoint" / "state.safetensors";
}

class Trainer {
 public:
  Trainer(FrozenModel& model, const BlockDataset& data, const TrainingConfig& config,
          const TrainerOptions& options, const TrainingCallbacks& callbacks, ProcessGroup& group)
      : model_(model),
        config_(config),
        options_(options),
        callbacks_(callbacks),
        group_(group),
        plan_{model, data, config,
              Lanes::share(config.batch, config.schedules, options.deterministic, group.rank(),
                           group.size()),
              group},
        shape_(config.network_shape(model.config().hidden_size)),
        order_(data.size(), config.seed),
        identity_(run_identity(model, data, config, options)),
        guard_(config.budget_guard()),
        network_(shape_, initial_parameters(shape_, config.seed), options.deterministic, guard_),
        optimiser_(network_, optimiser_options(config)),
        log_(options.out) {
    if (config.price_rate > 0) prices_.emplace(config.space, config.price_rate);
  }

  TrainingOutcome run(std::stop_token stop) {
    require_same_on_all_ranks(identity_, group_);
    begin();
    require_same_parameters(network_.parameters(), group_);
    if (group_.any(group_.leads() && nothing_left())) {
      note(fmt::format("nothing is left to do: the controller is trained for {} updates already",
                       counters_.updates));
      return {.finished = true, .updates = counters_.updates, .last = metrics_};
    }
    while (!finished()) {
      try {
        collect_and_update(stop);
      } catch (const Cancelled&) {
        checkpoint();
        note(fmt::format("stopped after {} updates; resume with --resume", counters_.updates));
        return {.finished = false, .updates = counters_.updates, .last = metrics_};
      }
      if (group_.leads() && checkpoint_due()) checkpoint();
      time_is_up_ = options_.minutes > 0 &&
                    group_.any(group_.leads() && since_start_.seconds() >= options_.minutes * 60);
    }
    checkpoint();
    if (counters_.minibatches > 0) {
      optimiser_.step(
          network_);  // the remainder; not in the checkpoint, so that a run can be prolonged
      counters_.minibatches = 0;
      ++counters_.updates;
    }
    if (group_.leads()) controller().save(options_.out);
    // Where writing failed no process may end as if all were well.
    group_.any(false);
    return {.finished = true, .updates = counters_.updates, .last = metrics_};
  }

 private:
  // Of an earlier controller, which must fit.
  Parameters parameters_to_start_from() const {
    const Controller start = Controller::load(options_.initial);
    start.require_model(model_.fingerprint(), "the model to train for");
    if (start.space() != config_.space || start.network().shape() != shape_) {
      fail(
          "{}: its action space or network differs from the configuration's; a run can start from "
          "a "
          "controller of the same shape only",
          options_.initial.string());
    }
    if (const std::string unlike = start.unlike_training(model_.outside_paper()); !unlike.empty())
      note(fmt::format("{}: {}", options_.initial.string(), unlike));
    return start.network().parameters();
  }

  fs::path checkpoint_path() const { return sol::checkpoint_path(options_.out); }

  void note(const std::string& text) const {
    if (callbacks_.on_note) callbacks_.on_note(text);
  }

  bool finished() const { return counters_.updates >= config_.updates || time_is_up_; }

  // Whether a finished run was resumed whose controller is there: saving it again would drop what
  // was added to it since, such as a frontier. Another run's, which --overwrite was to replace when
  // it was killed between checkpoint and controller, is not ours even where it is as long.
  bool nothing_left() const {
    if (checkpointed_collections_ == 0 || !finished() ||
        !path_exists(options_.out / "controller.json"))
      return false;
    const std::string where = (options_.out / "controller.json").string();
    try {
      const Controller saved = Controller::load(options_.out);
      const Json training = parse_json(saved.settings().training_json, where);
      return json_get_or<int64_t>(training, "collections", 0, where) == collections_ &&
             is_ours(training);
    } catch (const Error& e) {
      // It may hold more than this run would save, such as a frontier.
      fail("{}; to have the controller saved again from the checkpoint, delete {} first", e.what(),
           where);
    }
  }

  // Whether a controller's record is of a run with these settings.
  bool is_ours(const Json& record) const {
    if (!record.contains("config") || !record["config"].is_object()) return false;
    Json settings = record["config"];
    if (!settings.contains("optimisation")) return false;
    return settings_identity(std::move(settings), config_.depends_on_length()) ==
           identity_["config"];
  }

  // Files are the leading process's affair: the others may run on machines that do not see them.
  void begin() {
    since_start_ = since_checkpoint_ = {};
    std::optional<TrainingState> state;
    if (group_.leads() && options_.resume && path_exists(checkpoint_path()))
      state = load_checkpoint(checkpoint_path(), identity_, shape_);
    if (!group_.any(state.has_value())) {
      begin_anew();
    } else {
      if (!state) state.emplace();
      broadcast_state(*state, network_.parameters(), group_);
      restore(std::move(*state));
      if (!options_.initial.empty())
        note(fmt::format("{} is not read: the run has a checkpoint of its own",
                         options_.initial.string()));
      note(fmt::format("resumed at update {} of {}", counters_.updates, config_.updates));
    }
  }

  void begin_anew() {
    if (!options_.initial.empty())
      network_ = TorchNetwork(shape_, parameters_to_start_from(), options_.deterministic, guard_);
    if (!group_.leads()) return;
    if (options_.resume) note("no checkpoint yet: starting from the beginning");
    ensure_writable_directory(options_.out / "checkpoint");
    std::error_code ignored;
    fs::remove(checkpoint_path(), ignored);
    log_.begin(0, run_record());
  }

  void restore(TrainingState state) {
    if (state.updates > config_.updates)
      fail(
          "{}: the run has {} updates already, and optimisation.updates is {}; a run may be "
          "prolonged, not shortened",
          checkpoint_path().string(), state.updates, config_.updates);
    if (state.minibatches >= config_.grad_accum)
      fail("{}: minibatches = {} must be less than optimisation.grad_accum = {}",
           checkpoint_path().string(), state.minibatches, config_.grad_accum);
    network_ = TorchNetwork(shape_, state.parameters, options_.deterministic, guard_);
    for (const std::string& name : network_.names()) {
      const std::vector<float>& saved = state.gradients.at(name).values;
      std::ranges::copy(saved, network_.gradient(name).begin());
    }
    optimiser_.restore(state.updates, std::move(state.moments));
    counters_ = {.minibatches = state.minibatches, .updates = state.updates};
    collections_ = state.collections;
    position_ = state.position;
    earlier_seconds_ = state.seconds;
    metrics_ = state.metrics;
    gradient_norm_ = metrics_.gradient_norm;
    if (prices_) restore_prices();
    checkpointed_collections_ = collections_;
    checkpointed_updates_ = counters_.updates;
    if (!group_.leads()) return;
    if (const auto missing = log_.begin(collections_, run_record()); !missing.empty())
      note(fmt::format("{} lacks the lines of collections {}; the run itself lacks nothing",
                       (options_.out / "train.jsonl").string(), shown_numbers(missing)));
  }

  void restore_prices() {
    const std::string where = checkpoint_path().string() + ": metrics";
    if (!metrics_.prices) fail("{}: the field prices is missing", where);
    try {
      prices_->restore(*metrics_.prices);
    } catch (const Error& error) {
      fail("{}: {}", where, error.what());
    }
  }

  void checkpoint() {
    if (!group_.leads() || checkpointed_collections_ == collections_) return;
    TrainingState state;
    state.collections = collections_;
    state.position = position_;
    state.minibatches = counters_.minibatches;
    state.updates = counters_.updates;
    state.seconds = earlier_seconds_ + since_start_.seconds();
    state.metrics = metrics_;
    state.parameters = network_.parameters();
    for (const std::string& name : network_.names()) {
      const std::span<const float> gradient = network_.gradient(name);
      state.gradients[name] = {state.parameters.at(name).shape, {gradient.begin(), gradient.end()}};
    }
    state.moments = optimiser_.moments();
    log_.flush();
    save_checkpoint(checkpoint_path(), state, identity_);
    // A controller to look at while training goes on.
    controller().save(options_.out / "checkpoint" / "controller");
    checkpointed_collections_ = collections_;
    checkpointed_updates_ = counters_.updates;
    since_checkpoint_ = {};
  }

  bool checkpoint_due() const {
    return counters_.updates - checkpointed_updates_ >= config_.checkpoint_updates ||
           since_checkpoint_.seconds() >= config_.checkpoint_minutes * 60;
  }

  // What the run is, as opposed to how far it has come.
  Json run_record() const {
    return {{"config", config_.to_json()},
            {"blocks", plan_.data.size()},
            {"processes", group_.size()},
            {"run",
             to_json(describe_run(model_, options_.model_name, config_.seed, options_.command))}};
  }

  Controller controller() {
    ControllerSettings settings;
    settings.horizon = config_.horizon;
    settings.sequence = config_.sequence;
    settings.ranges = {config_.kappa.range, config_.rho.range, config_.eta.range};
    settings.costs = options_.costs;
    if (config_.time) settings.time = config_.time->range;
    settings.enforced = config_.enforced;
    settings.budget_prior = config_.prior;
    settings.model_fingerprint = model_.fingerprint();
    Json training = run_record();
    training["updates"] = counters_.updates;
    training["collections"] = collections_;
    training["inputs"] = position_;
    training["seconds"] = earlier_seconds_ + since_start_.seconds();
    training["last_collection"] = to_json(metrics_);
    settings.training_json = to_text(training);
    return Controller(config_.space, settings,
                      std::make_shared<PolicyNetwork>(shape_, network_.parameters()));
  }

  Collection collect(SpendingPrices* prices, std::stop_token stop) {
    const auto snapshot = std::make_shared<const PolicyNetwork>(shape_, network_.parameters());
    const auto policy =
        make_learned_policy(config_.space, snapshot, config_.loss.temperature, config_.seed,
                            options_.deterministic, options_.costs, guard_);
    const auto on_batch = [&](int64_t steps) {
      if (callbacks_.on_batch)
        callbacks_.on_batch(
            {counters_.updates, config_.updates, steps, config_.target_steps, seconds_left()});
    };
    const auto on_rollout = [&](int step) {
      if (callbacks_.on_rollout) callbacks_.on_rollout(step, config_.horizon);
    };
    return sol::collect(plan_, *policy, order_, position_, prices, {on_batch, on_rollout}, stop);
  }

  void collect_and_update(std::stop_token stop) {
    const Stopwatch time;
    std::optional<SpendingPrices> prices = prices_;  // a stopped collection leaves no trace
    Collection collected = collect(prices ? &*prices : nullptr, stop);
    prices_ = prices;
    const Stopwatch update_time;
    const double disagreement =
        assign_old_log_probs(network_, collected.schedules, config_, plan_.lanes);
    const int64_t before = counters_.updates * config_.grad_accum + counters_.minibatches;
    const UpdateSummary summary = update_policy(network_, optimiser_, collected.schedules, config_,
                                                collections_, counters_, plan_.lanes, group_);
    require_same_parameters(network_.parameters(), group_);
    minibatches_done_ += counters_.updates * config_.grad_accum + counters_.minibatches - before;

    const int64_t old_epoch = position_ == 0 ? 0 : order_.epoch(position_ - 1);
    position_ += collected.inputs;
    ++collections_;
    metrics_ = {};
    metrics_.collection = collections_;
    metrics_.update = counters_.updates;
    metrics_.updates = config_.updates;
    metrics_.position = position_;
    metrics_.epoch = order_.epoch(position_ - 1);
    metrics_.budget_range_share = budget_range_share(config_, static_cast<uint64_t>(position_ - 1));
    summarise(collected, config_, metrics_);
    if (prices_) metrics_.prices = prices_->table();
    metrics_.network_disagreement = largest(disagreement, group_);
    metrics_.loss = summary.mean.loss;
    metrics_.entropy = summary.mean.entropy;
    metrics_.entropy_weight = summary.entropy_weight;
    metrics_.distil_loss = summary.mean.distil_loss;
    metrics_.clip_fraction = summary.mean.clip_fraction;
    if (summary.gradient_norm > 0) gradient_norm_ = summary.gradient_norm;
    metrics_.gradient_norm = gradient_norm_;
    metrics_.learning_rate = optimiser_.learning_rate();
    metrics_.seconds_update = update_time.seconds();
    metrics_.seconds = time.seconds();
    metrics_.seconds_left = seconds_left();
    if (metrics_.epoch != old_epoch) {
      note(fmt::format("all {} blocks have been read; epoch {} begins in a new order",
                       plan_.data.size(), metrics_.epoch + 1));
    }
    if (group_.leads()) log_.append(metrics_);
    if (callbacks_.on_collection) callbacks_.on_collection(metrics_);
  }

  double seconds_left() const {
    const double elapsed = since_start_.seconds();
    std::optional<double> left;
    if (minibatches_done_ > 0) {
      const int64_t remaining =
          (config_.updates - counters_.updates) * config_.grad_accum - counters_.minibatches;
      left = elapsed / static_cast<double>(minibatches_done_) *
             static_cast<double>(std::max<int64_t>(0, remaining));
    }
    if (options_.minutes > 0) {
      const double until = std::max(0.0, options_.minutes * 60 - elapsed);
      left = left ? std::min(*left, until) : until;
    }
    return left.value_or(0.0);
  }

  FrozenModel& model_;
  const TrainingConfig& config_;
  const TrainerOptions& options_;
  const TrainingCallbacks& callbacks_;
  ProcessGroup& group_;
  CollectionPlan plan_;
  PolicyNetworkShape shape_;
  DataOrder order_;
  Json identity_;
  std::shared_ptr<const BudgetGuard> guard_;
  TorchNetwork network_;
  AdamW optimiser_;
  RunLog log_;
  std::optional<SpendingPrices> prices_;
  UpdateCounters counters_;
  int64_t collections_ = 0, position_ = 0;
  bool time_is_up_ = false;  // of this call; asked after a collection, as without any a run is none
  CollectionMetrics metrics_;
  double gradient_norm_ = 0;
  Stopwatch since_start_, since_checkpoint_;
  double earlier_seconds_ = 0;
  int64_t minibatches_done_ = 0;  // in this call
  int64_t checkpointed_collections_ = 0, checkpointed_updates_ = 0;
};

}  // namespace

void require_positions(const LlamaConfig& model, const TrainingConfig& config) {
  if (config.context + config.horizon <= model.max_position_embeddings) return;
  fail(
      "rollout.context {} and rollout.horizon {} exceed the model's {} positions; choose a shorter "
      "context",
      config.context, config.horizon, model.max_position_embeddings);
}

void require_trainable(const LlamaConfig& model, const TrainingConfig& config,
                       const TrainerOptions& options) {
  config.validate();
  if (config.time && !options.costs)
    fail(
        "the configuration's budget is a time (budgets.time): a table of what steps cost is needed "
        "(sol train --costs FILE, which `sol calibrate` writes)");
  if (!config.time && options.costs)
    fail("a table of costs is given, but the configuration's budget is no time (budgets.time)");
  if (options.costs && options.costs->horizon() != config.horizon)
    fail("the table of costs is for episodes of {} steps, rollout.horizon is {}",
         options.costs->horizon(), config.horizon);
  require_positions(model, config);
  if (const std::string name = model_file_in(options.out); !name.empty())
    fail("{}: holds a model ({}); train into a directory of its own", options.out.string(), name);
  RunLog::refuse_other_log(options.out);
  const bool checkpoint = path_exists(checkpoint_path(options.out));
  const bool controller = path_exists(options.out / "controller.json");
  if (options.resume && controller && !checkpoint)
    fail(
        "{}: holds a controller, but no checkpoint to resume from ({} is missing); train it anew "
        "with --overwrite, or start from it in another directory with --init",
        options.out.string(), checkpoint_path(options.out).string());
  ensure_writable_directory(options.out);
  if (!options.resume && !options.overwrite && (checkpoint || controller)) {
    fail(
        "{}: holds a training run already; go on with --resume, replace it with --overwrite, or "
        "choose another directory",
        options.out.string());
  }
  if (options.overwrite || (options.resume && checkpoint)) return;
  // Of a run that ended before its first checkpoint, which --resume begins again, or of something
  // else. One that failed before its first collection leaves an empty log, and nothing is lost with
  // its record.
  const fs::path log = options.out / "train.jsonl", record = options.out / "run.json";
  std::error_code unknown;
  if (options.resume || (fs::is_regular_file(log, unknown) && fs::file_size(log, unknown) == 0)) {
    require_replaceable(record, {"the record of a training run", "{\n \"config\":"});
    return;
  }
  for (const fs::path& file : {log, record})
    if (path_exists(file))
      fail(
          "{}: holds {}, which this run would replace; say so with --overwrite, or choose another "
          "directory",
          options.out.string(), file.filename().string());
}

TrainingOutcome train_controller(FrozenModel& model, const BlockDataset& data,
                                 const TrainingConfig& config, const TrainerOptions& options,
                                 const TrainingCallbacks& callbacks, std::stop_token stop) {
  const std::unique_ptr<ProcessGroup> lone = options.group ? nullptr : alone();
  ProcessGroup& group = options.group ? *options.group : *lone;
  std::optional<DirectoryLock> lock;
  if (group.leads()) {
    require_trainable(model.config(), config, options);
    lock.emplace(options.out);
  }
  if (data.block_length() != config.block_length()) {
    fail("training data: blocks of {} ids; context + horizon + 1 = {} are needed",
         data.block_length(), config.block_length());
  }
  // The failure of another process ends this one's rollouts.
  std::stop_source any_stop;
  const auto forward = [&any_stop] { any_stop.request_stop(); };
  const std::stop_callback on_stop(stop, forward), on_failure(group.failure(), forward);
  return Trainer(model, data, config, options, callbacks, group).run(any_stop.get_token());
}

}  // namespace sol
