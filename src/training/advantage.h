// From rewards to advantages: plain float32 arithmetic (paper, "GRPO with per-sequence budget
// sampling").
#pragma once

#include <span>
#include <vector>

#include "sol/action_space.h"
#include "training/schedule.h"

namespace sol {

struct PenaltyOptions {
  double kappa = 100, rho = 100, eta = 200;  // α; nonnegative
  double tolerance = 0.02;                   // τ
  double time = 1000;                        // α of a budget that is a time
};

struct AdvantageOptions {
  enum class Returns {
    sum,   // G_t = Σ_{u≥t} γ^{u-t} r_u
    max,   // max_{u≥t} γ^{u-t} r_u
    none,  // r_t
  };
  enum class Level {
    process,  // every step compared with the same step of the other schedules
    outcome,  // the first step's return stands for the whole schedule
  };
  enum class Norm {
    center,  // minus the group's mean
    zscore,  // and divided by its deviation at that step: over K values
  };
  // Over what values whitening takes mean and deviation: all steps of all schedules of ...
  enum class WhitenOver {
    batch,  // a loader batch, as in the paper: an input whose schedules differ much counts more
    // the K schedules of an input: every input counts alike. Unlike zscore's, the one deviation for
    // all of a group's steps leaves the differences between its steps.
    group,
  };
  double gamma = 0.85;  // 0 leaves r_t
  Returns returns = Returns::sum;
  Level level = Level::process;
  Norm norm = Norm::center;
  bool whiten = true;
  WhitenOver whiten_over = WhitenOver::batch;
  PenaltyOptions penalty;
  // Not in the paper: from a step's advantage goes, beside the group's mean, what its schedule
  // spent on earlier steps explains of it (docs/arithmetic.md, "Beyond the paper's update").
  bool spent_baseline = false;

  // As the authors' code does it: γ = 1 leaves r_t as γ = 0 does, and whitening's mean and
  // deviation are over all steps, not the effective ones only.
  bool reference = false;
};

// G_t for one schedule's rewards [T].
std::vector<float> returns_to_go(std::span<const float> rewards, const AdvantageOptions& options);

// C = Σ_axis α·max(0, |realised - requested| - τ)² (paper, equation "compute cost").
float budget_penalty(const Budget& realised, const Budget& requested,
                     const PenaltyOptions& options);

// C = α_time · max(0, |realised - requested| - τ)² of shares of the dense time, in place of the
// above where the budget is a time (outside the paper).
float time_penalty(float realised, float requested, const PenaltyOptions& options);

// Fills returns, penalty and advantages of the schedules of one loader batch: groups of
// `group_size` neighbours that share an input. Returns are of the rewards less the charges, where
// there are any. Returns the deviation of the batch's advantages
// before whitening. Throws Error when the number of schedules is not a multiple of the group or
// when schedules differ in length. `space`, of the schedules' actions, is read for
// options.spent_baseline only; without it, or without actions, that is an Error.
double assign_advantages(std::span<Schedule> schedules, int group_size,
                         const AdvantageOptions& options, const ActionSpace* space = nullptr);

}  // namespace sol
