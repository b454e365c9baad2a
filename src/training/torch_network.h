// The policy network as LibTorch trains it: the same parameters and arithmetic as policy/network.h,
// over whole schedules at once. LibTorch's headers are included by torch_network.cpp alone (and,
// for processes that train together, by gloo_group.cpp): they take half a minute to compile.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "policy/budget_guard.h"
#include "policy/network.h"
#include "training/schedule.h"

namespace sol {

struct LossOptions {
  double temperature = 1.3;  // of both old and new log-probabilities and of the entropy
  double clip = 0.2;         // ratio within 1 ± clip
  double entropy = 0.05;     // weight of the entropy
  double distil = 0;         // weight of distilling the best schedules; 0: as in the paper
};

struct LossTerms {
  // policy_loss - weight · entropy + weight · distil_loss, before the division by grad_accum
  double loss = 0;
  double policy_loss = 0;  // mean of -min(r·A, clip(r)·A)
  double entropy = 0;      // mean, nats
  double distil_loss = 0;  // mean of -imitation · log π(a), nats; 0 where its weight is
  double clip_fraction = 0;
  int64_t steps = 0;  // effective ones; the means are over these
};

class TorchNetwork {
 public:
  // Throws Error naming the parameter that is missing, superfluous or misshapen. LibTorch computes
  // with thread_count() threads, which share sums; deterministic: with one thread, so that results
  // do not depend on how many there are. With a guard, which is for the same actions, those that it
  // closes have no probability, as in the policy that enforces budgets.
  TorchNetwork(const PolicyNetworkShape& shape, const Parameters& parameters,
               bool deterministic = false, std::shared_ptr<const BudgetGuard> guard = nullptr);
  ~TorchNetwork();
  TorchNetwork(TorchNetwork&&) noexcept;
  TorchNetwork& operator=(TorchNetwork&&) noexcept;

  const PolicyNetworkShape& shape() const { return shape_; }
  Parameters parameters() const;  // a copy

  // Of one parameter and of its accumulated gradient, in place; `names` ascending.
  const std::vector<std::string>& names() const;
  std::span<float> values(const std::string& name);
  std::span<float> gradient(const std::string& name);
  void zero_gradients();

  // All schedules must have one length T, at most max_length. No gradients are kept.
  std::vector<float> logits(
      std::span<const Schedule* const> schedules) const;  // [N][T][A], undivided, of all actions
  std::vector<float> log_probs(std::span<const Schedule* const> schedules,
                               double temperature) const;  // [N][T], of the schedules' actions

  // Adds the gradient of loss / divisor of one minibatch (docs/arithmetic.md, "Group-relative
  // update"), which reads the schedules' old_log_probs, advantages and imitation. A minibatch
  // without an effective step adds nothing.
  LossTerms accumulate(std::span<const Schedule* const> schedules, const LossOptions& options,
                       double divisor);

 private:
  struct Impl;
  PolicyNetworkShape shape_;
  std::unique_ptr<Impl> impl_;
};

}  // namespace sol
