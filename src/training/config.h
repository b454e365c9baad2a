// A training configuration: one YAML file (docs/formats.md, "Training configuration").
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/json.h"
#include "policy/budget_guard.h"
#include "policy/network.h"
#include "sol/action_space.h"
#include "sol/controller.h"
#include "sol/frozen_model.h"
#include "text/text_reader.h"
#include "training/adamw.h"
#include "training/advantage.h"
#include "training/curriculum.h"
#include "training/torch_network.h"

namespace sol {

// Where an input's budget on one axis comes from: uniform in the range, or one of the list.
struct BudgetSource {
  BudgetRange range;
  std::vector<double> list;  // empty: the range
};

struct TrainingConfig {
  std::string name;
  std::string model;  // the frozen model it was made for; for people
  ActionSpace space{{1.0f}, {1.0f}, {16}};
  SequenceOptions sequence;  // page size, sinks, window
  BudgetSource kappa, rho, eta;
  // Of shares of the dense time, in place of the three: needs a cost table to train with.
  std::optional<BudgetSource> time;
  bool enforced = false;  // only actions after which the budget can be met (policy/budget_guard.h)
  double prior = 0;       // how much of those the ones near to what is left are favoured
  CurriculumOptions curriculum;

  int context = 1024;
  int horizon = 16;      // T
  int schedules = 16;    // K
  int batch = 8;         // inputs decoded together, and whitened together
  double task_kl = 0.0;  // weight of KL(dense ‖ executed) in the reward, beside log p(y)
  // Of prices of spending, which are taken from the reward (training/spending_price.h); 0: none, as
  // in the paper.
  double price_rate = 0;

  PolicyNetworkShape policy;  // all but hidden_size and actions; see network_shape
  AdvantageOptions advantage;
  LossOptions loss;
  // Of the entropy's weight, which goes there linearly from loss.entropy over `updates`; none:
  // constant, as in the paper.
  std::optional<double> final_entropy;
  // A schedule may be distilled (loss.distil) that misses no average by more. Wider than the
  // penalty's τ: over few steps of two levels most averages cannot be met as closely as that.
  double distil_tolerance = 0.05;
  AdamWOptions optimiser;
  int updates = 1560;       // AdamW steps
  int grad_accum = 8;       // minibatches per AdamW step
  int minibatch = 512;      // steps
  int target_steps = 2048;  // steps collected before an update

  TextOptions text;
  uint64_t seed = 1234;
  int checkpoint_updates = 25;
  double checkpoint_minutes = 10;

  int block_length() const { return context + horizon + 1; }
  // Of the policy that is trained: `policy` for this action space and a model of that width.
  PolicyNetworkShape network_shape(int hidden_size) const;
  std::shared_ptr<const BudgetGuard> budget_guard() const;  // null unless budgets are enforced
  int minibatch_schedules() const;                          // max(1, minibatch / T)
  double entropy_weight(int64_t update) const;              // of the loss after so many AdamW steps
  // Whether something changes with a run's progress: then the run's length belongs to it, and
  // prolonged it would be another one.
  bool depends_on_length() const;

  // Throws Error naming the field for values out of range or contradicting each other.
  void validate() const;
  bool is_valid() const;  // whether validate() accepts it

  // Everything that decides the result of training, for checkpoints and for the controller's
  // record.
  Json to_json() const;
};

// `overrides`: dotted keys and YAML values, {"rollout.batch", "4"}. Throws Error naming file, line
// and key for anything unknown, missing, of another type or out of range.
TrainingConfig load_training_config(
    const std::filesystem::path& path,
    const std::vector<std::pair<std::string, std::string>>& overrides = {});

}  // namespace sol
