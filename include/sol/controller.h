// A controller: a trained policy network with everything needed to use it, as a directory
// (docs/formats.md).
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "sol/action_space.h"
#include "sol/frozen_model.h"
#include "sol/policy.h"

namespace sol {

class BudgetGuard;
class CostTable;
class PolicyNetwork;

struct BudgetRange {
  double low = 1.0, high = 1.0;

  bool contains(float budget) const {
    // Budgets are float32: a range's own end must not be outside it.
    constexpr double slack = 1e-6;
    const auto asked = static_cast<double>(budget);
    return asked >= low - slack && asked <= high + slack;
  }
};

struct BudgetRanges {
  BudgetRange kappa, rho, eta;
  const BudgetRange& operator[](Axis axis) const {
    return axis == Axis::kappa ? kappa : axis == Axis::rho ? rho : eta;
  }
};

// One point of the validation frontier: asking for `budget` realised `net_keep` at `perplexity`.
struct FrontierPoint {
  double net_keep = 1.0;
  Budget budget;
  double perplexity = 0.0;
};

struct ControllerSettings {
  int horizon = 16;
  SequenceOptions sequence;             // page size, sinks, window: the rest is not stored
  BudgetRanges ranges;                  // that training drew budgets from
  std::vector<FrontierPoint> frontier;  // ascending net_keep; may be empty (an untested controller)
  // Not null: trained for shares of the dense time by this table (time_budget), which were drawn
  // from `time`. `ranges` are the levels' then, and there is no frontier.
  std::shared_ptr<const CostTable> costs;
  BudgetRange time;
  // Trained with actions closed after which a budget could not be met, and used so.
  bool enforced = false;
  // Of enforced budgets: how much actions near to what is left per step are favoured (0: not).
  double budget_prior = 0;
  std::string model_fingerprint;
  std::string training_json = "{}";  // settings, metrics, run: for people
};

class Controller {
 public:
  // Earlier versions are read as well, and the first one that has all that a controller says is
  // written, so that older programs read it: 2, 3 with costs, 4 with enforced budgets, 5 with a
  // prior, 6 with the surprisal among the features.
  static constexpr int format_version = 6;

  // Throws Error for settings that make no sense, a training record that is not JSON, or a network
  // that does not fit the action space.
  Controller(ActionSpace space, ControllerSettings settings,
             std::shared_ptr<const PolicyNetwork> network);

  // Reads DIR/controller.json and the weights that it names. Throws Error for anything missing,
  // malformed, misshapen, damaged or of a later format version.
  static Controller load(const std::filesystem::path& dir);
  // Writes the weights beside those of an existing controller, then replaces its controller.json:
  // until that one rename the old controller is whole, and after it the new one. Throws Error when
  // something cannot be written; the old controller is intact then.
  void save(const std::filesystem::path& dir) const;

  // Throws Error naming both fingerprints when this controller was trained for another model.
  void require_model(const std::string& fingerprint, const std::string& model_name) const;

  // "" where its model ran with just these options outside the paper (FrozenModel::outside_paper)
  // while it was trained, else a sentence that names both: such options change what its choices
  // cost. A training record that does not tell counts as none.
  std::string unlike_training(const std::vector<std::string>& outside_paper) const;

  // Turns one net keep-rate into a triple by the validation frontier (interpolated between its
  // points). Throws Error when there is no frontier or the rate lies outside it, naming its ends,
  // and for a controller for times.
  Budget budget_for_net_keep(double net_keep) const;

  // "" when inside the trained ranges, else a sentence that names the axis (or says that it is the
  // time), the value and the range.
  std::string outside_trained_ranges(const Budget& budget) const;

  // Replaces the validation frontier. Throws Error for points that make no sense; the old one stays
  // then.
  void set_frontier(std::vector<FrontierPoint> frontier);

  // Greedy (argmax, temperature 1), as at evaluation. `deterministic` as in ModelOptions.
  std::unique_ptr<Policy> greedy_policy(bool deterministic = false) const;

  // The request that leaves `ms` per token with `keys` in the cache, by its table; for controllers
  // with costs only.
  Budget budget_for_ms(double ms, int keys) const;

  const ActionSpace& space() const { return space_; }
  const ControllerSettings& settings() const { return settings_; }
  const PolicyNetwork& network() const { return *network_; }

 private:
  ActionSpace space_;
  ControllerSettings settings_;
  std::shared_ptr<const PolicyNetwork> network_;
  std::shared_ptr<const BudgetGuard> guard_;  // null unless budgets are enforced
};

}  // namespace sol
