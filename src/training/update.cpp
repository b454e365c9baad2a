#include "training/update.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "base/fail.h"
#include "training/data_order.h"

namespace sol {
namespace {

// As many of the process's own schedules as a minibatch has, never of two lanes: what is computed
// together must not depend on how many lanes a process has.
std::vector<std::vector<Schedule*>> chunks_of_own(std::span<Schedule> schedules,
                                                  const TrainingConfig& config,
                                                  const Lanes& lanes) {
  const size_t size = static_cast<size_t>(config.minibatch_schedules());
  std::vector<std::vector<Schedule*>> out;
  for (int lane = lanes.first; lane < lanes.first + lanes.own; ++lane) {
    bool open = false;
    for (size_t i = 0; i < schedules.size(); ++i) {
      if (lanes.split() && lanes.of_schedule(i) != lane) continue;
      if (!open || out.back().size() == size) out.emplace_back();
      open = true;
      out.back().push_back(&schedules[i]);
    }
  }
  return out;
}

}  // namespace

double assign_old_log_probs(const TorchNetwork& network, std::span<Schedule> schedules,
                            const TrainingConfig& config, const Lanes& lanes) {
  double worst = 0;
  for (const std::vector<Schedule*>& part : chunks_of_own(schedules, config, lanes)) {
    const std::vector<const Schedule*> pointers(part.begin(), part.end());
    const std::vector<float> all = network.log_probs(pointers, config.loss.temperature);
    for (size_t i = 0; i < part.size(); ++i) {
      Schedule& s = *part[i];
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

namespace {

// Schedules of a minibatch by their index in the collection.
using Minibatch = std::vector<size_t>;

std::vector<Minibatch> cut_into_minibatches(const std::vector<int64_t>& order, size_t size) {
  std::vector<Minibatch> out;
  for (size_t i = 0; i < order.size(); ++i) {
    if (i % size == 0) out.emplace_back();
    out.back().push_back(static_cast<size_t>(order[i]));
  }
  return out;
}

int64_t effective_steps(const Schedule& schedule) {
  return std::ranges::count_if(schedule.effective, [](uint8_t flag) { return flag != 0; });
}

// Sums over minibatches of their means; of one lane, or of all.
struct TermSums {
  double loss = 0, policy_loss = 0, entropy = 0, distil_loss = 0, clip_fraction = 0;
  int64_t steps = 0;

  void add(const LossTerms& terms, double share) {
    loss += share * terms.loss;
    policy_loss += share * terms.policy_loss;
    entropy += share * terms.entropy;
    distil_loss += share * terms.distil_loss;
    clip_fraction += share * terms.clip_fraction;
    steps += terms.steps;
  }
  void add(const TermSums& other) {
    loss += other.loss;
    policy_loss += other.policy_loss;
    entropy += other.entropy;
    distil_loss += other.distil_loss;
    clip_fraction += other.clip_fraction;
    steps += other.steps;
  }
  LossTerms mean(double minibatches) const {
    const double scale = minibatches > 0 ? 1 / minibatches : 0;
    LossTerms out;
    out.loss = loss * scale;
    out.policy_loss = policy_loss * scale;
    out.entropy = entropy * scale;
    out.distil_loss = distil_loss * scale;
    out.clip_fraction = clip_fraction * scale;
    out.steps = steps;
    return out;
  }
};

// Gradients of one collection's minibatches, lane by lane, under parameters that do not change
// meanwhile.
class GradientOfLanes {
 public:
  GradientOfLanes(TorchNetwork& network, std::span<const Schedule> schedules,
                  const TrainingConfig& config, const Lanes& lanes, ProcessGroup& group)
      : network_(network),
        schedules_(schedules),
        config_(config),
        lanes_(lanes),
        group_(group),
        sums_(static_cast<size_t>(lanes.own)) {}

  // Adds the gradients of `minibatches` of all processes to those in the network.
  void accumulate(std::span<const Minibatch> minibatches, const LossOptions& loss) {
    if (!lanes_.split()) {
      accumulate_lane(0, minibatches, loss);
      return;
    }
    const std::vector<float> before = gradients();
    std::vector<float> sum = sum_by_halves(
        lanes_.first, lanes_.own,
        [&](int lane) {
          network_.zero_gradients();
          accumulate_lane(lane, minibatches, loss);
          return gradients();
        },
        [](std::vector<float>& left, const std::vector<float>& right) { add(left, right); });
    group_.sum(sum);
    add(sum, before);
    const float* next = sum.data();
    for (const std::string& name : network_.names()) {
      const std::span<float> gradient = network_.gradient(name);
      std::copy_n(next, gradient.size(), gradient.begin());
      next += gradient.size();
    }
  }

  // Of everything accumulated, over all lanes in their order.
  TermSums terms() {
    TermSums out;
    const std::string_view own(reinterpret_cast<const char*>(sums_.data()),
                               sums_.size() * sizeof(TermSums));
    for (const std::string& lanes : group_.all_gather(own)) {
      for (size_t at = 0; at < lanes.size(); at += sizeof(TermSums)) {
        TermSums lane;
        std::memcpy(static_cast<void*>(&lane), lanes.data() + at, sizeof(lane));
        out.add(lane);
      }
    }
    return out;
  }

 private:
  static void add(std::vector<float>& left, const std::vector<float>& right) {
    for (size_t i = 0; i < left.size(); ++i) left[i] += right[i];
  }

  std::vector<float> gradients() {
    size_t count = 0;
    for (const std::string& name : network_.names()) count += network_.gradient(name).size();
    std::vector<float> out;
    out.reserve(count);
    for (const std::string& name : network_.names()) {
      const std::span<const float> gradient = network_.gradient(name);
      out.insert(out.end(), gradient.begin(), gradient.end());
    }
    return out;
  }

  // A minibatch's loss is a mean over its effective steps; a lane has some of them.
  void accumulate_lane(int lane, std::span<const Minibatch> minibatches, const LossOptions& loss) {
    for (const Minibatch& minibatch : minibatches) {
      std::vector<const Schedule*> own;
      int64_t own_steps = 0, all_steps = 0;
      for (const size_t index : minibatch) {
        const int64_t steps = effective_steps(schedules_[index]);
        all_steps += steps;
        if (lanes_.split() && lanes_.of_schedule(index) != lane) continue;
        own_steps += steps;
        own.push_back(&schedules_[index]);
      }
      if (own_steps == 0) continue;
      const double share = static_cast<double>(own_steps) / static_cast<double>(all_steps);
      const LossTerms terms = network_.accumulate(own, loss, config_.grad_accum / share);
      sums_[static_cast<size_t>(lane - lanes_.first)].add(terms, share);
    }
  }

  TorchNetwork& network_;
  std::span<const Schedule> schedules_;
  const TrainingConfig& config_;
  const Lanes& lanes_;
  ProcessGroup& group_;
  std::vector<TermSums> sums_;  // [own lanes]
};

}  // namespace

UpdateSummary update_policy(TorchNetwork& network, AdamW& optimiser,
                            std::span<const Schedule> schedules, const TrainingConfig& config,
                            int64_t collection, UpdateCounters& counters, const Lanes& lanes,
                            ProcessGroup& group) {
  const auto minibatches =
      cut_into_minibatches(shuffled(static_cast<int64_t>(schedules.size()), config.seed,
                                    RandomStream::shuffle, static_cast<uint64_t>(collection)),
                           static_cast<size_t>(config.minibatch_schedules()));
  UpdateSummary summary;
  GradientOfLanes gradient(network, schedules, config, lanes, group);
  size_t done = 0;
  while (done < minibatches.size() && counters.updates < config.updates) {
    const size_t until_step = static_cast<size_t>(config.grad_accum - counters.minibatches);
    const auto part =
        std::span(minibatches).subspan(done).first(std::min(until_step, minibatches.size() - done));
    LossOptions loss = config.loss;
    loss.entropy = summary.entropy_weight = config.entropy_weight(counters.updates);
    gradient.accumulate(part, loss);
    done += part.size();
    counters.minibatches += static_cast<int64_t>(part.size());
    if (counters.minibatches == config.grad_accum) {
      summary.gradient_norm = optimiser.step(network);
      counters.minibatches = 0;
      ++counters.updates;
    }
  }
  summary.mean = gradient.terms().mean(static_cast<double>(done));
  return summary;
}

UpdateSummary update_policy(TorchNetwork& network, AdamW& optimiser,
                            std::span<const Schedule> schedules, const TrainingConfig& config,
                            int64_t collection, UpdateCounters& counters) {
  return update_policy(network, optimiser, schedules, config, collection, counters, Lanes::single(),
                       *alone());
}

}  // namespace sol
