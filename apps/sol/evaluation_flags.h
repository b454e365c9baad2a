// What sweep, eval and probe share: text cut into blocks, a controller or levels, the protocol.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/stopwatch.h"
#include "common.h"
#include "engine/run_info.h"
#include "evaluation/budget_grid.h"
#include "evaluation/named_policy.h"
#include "evaluation/perplexity.h"
#include "sol/controller.h"
#include "text/block_dataset.h"

namespace sol::app {

// Cache memory in which dense prefixes may wait for a second pass over the same blocks.
inline constexpr uint64_t prefix_memory = uint64_t{1} << 30;

struct EvaluationFlags {
  ModelFlags model;
  SequenceFlags sequence;
  std::filesystem::path controller;
  std::string kappa_levels, rho_levels, bits_levels;  // without a controller
  std::vector<std::filesystem::path> data;
  std::string format = "documents";
  std::string text_field = "text";
  std::filesystem::path cache;
  std::optional<int64_t> blocks;
  int context = 1024;
  std::optional<int> horizon;
  std::filesystem::path costs;
  int batch = 256;
};

// What any command takes that runs policies on a model: the model, a controller or levels, the page
// rule, --horizon, --batch.
void add_policy_flags(CLI::App& command, EvaluationFlags& flags);
// The same, and text cut into blocks.
void add_evaluation_flags(CLI::App& command, EvaluationFlags& flags);

// What these flags name to be read, files and directories, for ensure_writable_output().
std::vector<std::filesystem::path> evaluation_inputs(const EvaluationFlags& flags);

// Throws Error for a controller that was trained for another model; notes where that model ran with
// other options outside the paper, which change what a controller's choices cost.
void require_model(const Controller& controller, const ModelFlags& flags, const FrozenModel& model);

// The controller at `dir`, so checked.
Controller load_flagged_controller(const std::filesystem::path& dir, const ModelFlags& flags,
                                   const FrozenModel& model);

// Everything loaded and checked; text and blocks by set_up_evaluation only.
struct EvaluationSetup {
  std::unique_ptr<FrozenModel> model;
  std::optional<Controller> controller;
  std::optional<ActionSpace>
      space;  // the controller's, or of the levels; none where neither is given
  ProtocolOptions protocol;
  std::optional<BlockDataset> data;
  std::vector<int64_t> blocks;  // the first ones
  RunInfo run;
  std::string data_name, controller_name;

  // Throws Error saying what to give where there is none.
  const ActionSpace& require_space() const;
  // For make_named_policy; the space is dense where no levels are given.
  PolicyParts policy_parts(const EvaluationFlags& flags) const;
  // Throws Error for a controller for times, for commands that ask for averages per axis only.
  void refuse_times(const std::string& command) const;
  const Controller* controller_or_null() const { return controller ? &*controller : nullptr; }
  // For results in JSON: context, horizon, page rule, data, controller.
  Json protocol_json() const;
};

// The model, the controller or levels, and the page rule. Errors: as the parts; a controller for
// another model.
EvaluationSetup set_up_policies(const EvaluationFlags& flags);

// Errors: as above; more blocks asked for than the text has. A horizon or page rule given here
// overrides neither the model's nor the controller's checks.
EvaluationSetup set_up_evaluation(const EvaluationFlags& flags);

// --keep, --prune, --bits or --budget (net keep-rate by the controller's frontier); --time or --ms
// with a controller for times.
struct BudgetFlags {
  std::optional<double> keep, prune, bits, net_keep;
  std::optional<double> time = {}, ms = {};
  bool shares() const { return keep || prune || bits || net_keep; }
  bool any() const { return shares() || time || ms; }
};
void add_budget_flags(CLI::App& command, BudgetFlags& flags);
// `controller` may be null where --budget is not given, `space` where there are no levels.
// Throws Error for a time, which flagged_time() takes.
Budget flagged_budget(const BudgetFlags& flags, const Controller* controller,
                      const ActionSpace* space);
// Of a controller for times, with `keys` in the cache; without a flag the dense time. Throws Error
// for shares.
Budget flagged_time(const BudgetFlags& flags, const Controller& controller, int keys);

// What --ms asks for that the controller's table cannot give with `keys` in the cache, as a
// sentence; empty where it can.
std::string unreachable_ms(double ms, const Controller& controller, int keys);

// "keep 0.500  prune 0.700  bits 9.00".
std::string budget_text(const Budget& budget);
// The same, or "0.800 of the dense time".
std::string request_text(const Budget& budget, bool time);

// Shows "doing 37 %  1 min 20 s left" on a progress line. The time left follows from what was done
// since the first update: some of the work may have been done before.
class WorkProgress {
 public:
  explicit WorkProgress(std::string doing) : doing_(std::move(doing)) {}
  void update(int64_t done, int64_t total);
  void finish() { line_.finish(); }

 private:
  std::string doing_;
  std::optional<Stopwatch> since_first_;
  int64_t first_ = 0;
  ProgressLine line_;
};

}  // namespace sol::app
