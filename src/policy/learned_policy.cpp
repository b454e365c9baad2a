#include <algorithm>
#include <cmath>

#include "base/fail.h"
#include "base/random.h"
#include "base/threads.h"
#include "policy/cost_table.h"
#include "policy/policies.h"

namespace sol {
namespace {

struct LearnedState : PolicyState {
  PolicyNetwork::State network;
  EpisodeId id;
  uint32_t first_step;  // steps of this sequence's earlier episodes
  int horizon = 0;
  int counted = 0;  // steps so far that count
};

class LearnedPolicy final : public Policy {
 public:
  LearnedPolicy(ActionSpace space, std::shared_ptr<const PolicyNetwork> network, double temperature,
                uint64_t seed, bool deterministic, std::shared_ptr<const CostTable> costs,
                std::shared_ptr<const BudgetGuard> guard)
      : space_(std::move(space)),
        network_(std::move(network)),
        temperature_(temperature),
        seed_(seed),
        mode_(deterministic ? kernels::MatmulMode::own : kernels::MatmulMode::library),
        costs_(std::move(costs)),
        guard_(std::move(guard)) {
    if (costs_) require_times_fit(space_);
    if (costs_ && guard_) fail("learned policy: a budget of time cannot be enforced");
    if (network_->shape().actions != space_.size())
      fail("learned policy: the network has {} actions, the action space {}",
           network_->shape().actions, space_.size());
    if (!(temperature >= 0.0 && std::isfinite(temperature)))
      fail("learned policy: temperature {} must be 0 (greedy) or more", temperature);
  }

  std::string name() const override { return "learned"; }
  const ActionSpace& space() const override { return space_; }
  Needs needs() const override {
    return {.hidden = true, .embedding = true, .surprisal = network_->shape().surprisal};
  }
  const CostTable* costs() const override { return costs_.get(); }

  std::unique_ptr<PolicyState> begin(const Budget&, int horizon,
                                     const EpisodeId& id) const override {
    if (horizon > network_->shape().max_length)
      fail("learned policy: a horizon of {} steps exceeds the network's {} positions", horizon,
           network_->shape().max_length);
    auto state = std::make_unique<LearnedState>();
    state->id = id;
    state->first_step = static_cast<uint32_t>(id.episode * static_cast<uint64_t>(horizon));
    state->horizon = horizon;
    return state;
  }

  void next(std::span<PolicyStep> steps) const override {
    const auto actions = static_cast<size_t>(space_.size());
    std::vector<float> logits(steps.size() * actions);
    std::vector<PolicyNetwork::Input> inputs;
    inputs.reserve(steps.size());
    for (PolicyStep& step : steps) {
      auto& state = static_cast<LearnedState&>(*step.state);
      const Observation& seen = *step.observation;
      inputs.push_back({&state.network, seen.hidden, seen.embedding, seen.features,
                        seen.previous_action, logits.data() + inputs.size() * actions,
                        seen.surprisal});
    }
    network_->step(inputs, mode_);
    const auto choose_one = [&](int64_t i) {
      PolicyStep& step = steps[static_cast<size_t>(i)];
      const std::span own(inputs[static_cast<size_t>(i)].logits, actions);
      if (guard_) add_biases(own, step);
      choose(own, step);
    };
    const auto count = static_cast<int64_t>(steps.size());
    // Waking threads costs more than drawing from a few small distributions does.
    if (logits.size() >= 1 << 13) return parallel_for(count, choose_one);
    for (int64_t i = 0; i < count; ++i) choose_one(i);
  }

 private:
  // Takes those actions away after which the budget could not be met, and favours some.
  void add_biases(std::span<float> logits, const PolicyStep& step) const {
    auto& state = static_cast<LearnedState&>(*step.state);
    const Observation& seen = *step.observation;
    if (!seen.effective) return;
    std::vector<float> bias(logits.size());
    guard_->biases(seen.features, state.counted, state.horizon - seen.step + 1, bias);
    for (size_t a = 0; a < logits.size(); ++a) logits[a] += bias[a];
    ++state.counted;
  }

  void choose(std::span<const float> logits, PolicyStep& step) const {
    const auto best = std::max_element(logits.begin(), logits.end());
    step.action = static_cast<int>(best - logits.begin());
    step.log_prob = 0.0f;
    if (temperature_ == 0.0) return;

    // In double, so that the draw and its log-probability do not depend on the order of the logits.
    std::vector<double> cumulative(logits.size());
    double sum = 0.0;
    for (size_t a = 0; a < logits.size(); ++a)
      cumulative[a] = sum += std::exp(scaled(logits[a], *best));
    const auto& state = static_cast<const LearnedState&>(*step.state);
    Random random({seed_, RandomStream::action, state.id.sequence, state.id.rollout,
                   state.first_step + static_cast<uint32_t>(step.observation->step)});
    const double threshold = random.uniform_double() * sum;
    const auto drawn = std::upper_bound(cumulative.begin(), cumulative.end() - 1, threshold);
    step.action = static_cast<int>(drawn - cumulative.begin());
    step.log_prob =
        static_cast<float>(scaled(logits[static_cast<size_t>(step.action)], *best) - std::log(sum));
  }

  double scaled(float logit, float largest) const {
    return (static_cast<double>(logit) - static_cast<double>(largest)) / temperature_;
  }

  ActionSpace space_;
  std::shared_ptr<const PolicyNetwork> network_;
  double temperature_;
  uint64_t seed_;
  kernels::MatmulMode mode_;
  std::shared_ptr<const CostTable> costs_;
  std::shared_ptr<const BudgetGuard> guard_;
};

}  // namespace

std::unique_ptr<Policy> make_learned_policy(ActionSpace space,
                                            std::shared_ptr<const PolicyNetwork> network,
                                            double temperature, uint64_t seed, bool deterministic,
                                            std::shared_ptr<const CostTable> costs,
                                            std::shared_ptr<const BudgetGuard> guard) {
  return std::make_unique<LearnedPolicy>(std::move(space), std::move(network), temperature, seed,
                                         deterministic, std::move(costs), std::move(guard));
}

}  // namespace sol
