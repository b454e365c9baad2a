#include "training/update.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/fail.h"
#include "training/data_order.h"

namespace sol {

double assign_old_log_probs(const TorchNetwork& network, std::span<Schedule> schedules,
                            const TrainingConfig& config) {
  double worst = 0;
  const size_t chunk = static_cast<size_t>(config.minibatch_schedules());
  for (size_t first = 0; first < schedules.size(); first += chunk) {
    const std::span<Schedule> part =
        schedules.subspan(first, std::min(chunk, schedules.size() - first));
    std::vector<const Schedule*> pointers;
    for (const Schedule& s : part) pointers.push_back(&s);
    const std::vector<float> all = network.log_probs(pointers, config.loss.temperature);
    for (size_t i = 0; i < part.size(); ++i) {
      Schedule& s = part[i];
      const size_t steps = static_cast<size_t>(s.steps());
      s.old_log_probs.assign(steps, 0.0f);
      for (size_t t = 0; t < steps; ++t) {
        if (!s.effective[t]) continue;
        s.old_log_probs[t] = all[i * steps + t];
        const double difference =
            std::abs(static_cast<double>(all[i * steps + t]) - s.inference_log_probs[t]);
        if (!std::isfinite(difference)) {
          fail(
              "the policy's log-probability of action {} at step {} is not finite: training has "
              "diverged; lower optimisation.learning_rate",
              s.actions[t], t + 1);
        }
        if (difference > network_tolerance) {
          fail(
              "training and inference networks disagree by {} on the log-probability of action {} "
              "at step {}; "
              "at most {} may come from rounding, more where training is diverging and "
              "optimisation.learning_rate must be lowered",
              difference, s.actions[t], t + 1, network_tolerance);
        }
        worst = std::max(worst, difference);
      }
    }
  }
  return worst;
}

UpdateSummary update_policy(TorchNetwork& network, AdamW& optimiser,
                            std::span<const Schedule> schedules, const TrainingConfig& config,
                            int64_t collection, UpdateCounters& counters) {
  const auto order = shuffled(static_cast<int64_t>(schedules.size()), config.seed,
                              RandomStream::shuffle, static_cast<uint64_t>(collection));
  const size_t chunk = static_cast<size_t>(config.minibatch_schedules());
  UpdateSummary summary;
  double count = 0;
  for (size_t first = 0; first < order.size() && counters.updates < config.updates;
       first += chunk) {
    std::vector<const Schedule*> minibatch;
    for (size_t i = first; i < std::min(first + chunk, order.size()); ++i) {
      minibatch.push_back(&schedules[static_cast<size_t>(order[i])]);
    }
    LossOptions loss = config.loss;
    loss.entropy = summary.entropy_weight = config.entropy_weight(counters.updates);
    const LossTerms terms = network.accumulate(minibatch, loss, config.grad_accum);
    summary.mean.loss += terms.loss;
    summary.mean.policy_loss += terms.policy_loss;
    summary.mean.entropy += terms.entropy;
    summary.mean.distil_loss += terms.distil_loss;
    summary.mean.clip_fraction += terms.clip_fraction;
    summary.mean.steps += terms.steps;
    count += 1;
    if (++counters.minibatches == config.grad_accum) {
      summary.gradient_norm = optimiser.step(network);
      counters.minibatches = 0;
      ++counters.updates;
    }
  }
  if (count > 0) {
    summary.mean.loss /= count;
    summary.mean.policy_loss /= count;
    summary.mean.entropy /= count;
    summary.mean.distil_loss /= count;
    summary.mean.clip_fraction /= count;
  }
  return summary;
}

}  // namespace sol
