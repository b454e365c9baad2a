#include "policy/controlled.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <map>

#include "base/fail.h"
#include "base/stopwatch.h"

namespace sol {
namespace {

// (1 - cos) / 2, in [0, 1]; ½ where a vector is zero (no direction, cos counted as 0).
float drift_between(const float* a, const float* b, size_t n) {
  double dot = 0, aa = 0, bb = 0;
  for (size_t i = 0; i < n; ++i) {
    dot += static_cast<double>(a[i]) * static_cast<double>(b[i]);
    aa += static_cast<double>(a[i]) * static_cast<double>(a[i]);
    bb += static_cast<double>(b[i]) * static_cast<double>(b[i]);
  }
  const double cosine = aa > 0 && bb > 0 ? dot / std::sqrt(aa * bb) : 0.0;
  return static_cast<float>((1.0 - std::clamp(cosine, -1.0, 1.0)) / 2.0);
}

// Embeddings of the distinct tokens of a batch: rollouts of one input share theirs.
class Embeddings {
 public:
  explicit Embeddings(const FrozenModel& model) : model_(model) {}

  const float* of(int32_t token) {
    auto [entry, added] = values_.try_emplace(token);
    if (added) {
      entry->second.resize(static_cast<size_t>(model_.config().hidden_size));
      model_.embedding(token, entry->second);
    }
    return entry->second.data();
  }

 private:
  const FrozenModel& model_;
  std::map<int32_t, std::vector<float>> values_;
};

// The hidden state's, or of the first decoded token the embedding's (paper, appendix, "Designing
// static strategies"); -1 without a previous token.
float drift(const ControlledStep& step, Embeddings& embeddings, size_t hidden_size) {
  const Controlled& sequence = *step.controlled;
  const LastPosition& last = sequence.last;
  if (last.earlier_hidden.size() == hidden_size)
    return drift_between(last.hidden.data(), last.earlier_hidden.data(), hidden_size);
  if (sequence.previous_token < 0) return -1;
  return drift_between(embeddings.of(sequence.previous_token), embeddings.of(step.token),
                       hidden_size);
}

Observation observe(const ControlledStep& step, Embeddings& embeddings, size_t hidden_size) {
  const Controlled& sequence = *step.controlled;
  const Policy::Needs needs = sequence.policy->needs();
  const int key_count = sequence.sequence->length() + 1;
  const LastPosition& last = sequence.last;
  if ((needs.hidden || needs.drift) && last.hidden.size() != hidden_size)
    fail(
        "policy \"{}\" needs the hidden state of the previous position ({} values), got {}; ask "
        "for it in the dense pass",
        sequence.policy->name(), hidden_size, last.hidden.size());
  if (needs.surprisal && std::isnan(last.log_prob))
    fail(
        "policy \"{}\" needs the log-probability of token {} at the previous position, but nobody "
        "asked for it there, or it is not a number as the model is broken",
        sequence.policy->name(), step.token);

  Observation seen;
  if (needs.hidden) seen.hidden = last.hidden.data();
  if (needs.embedding) seen.embedding = embeddings.of(step.token);
  if (needs.entropy) seen.previous_entropy = last.entropy;
  if (needs.drift) seen.drift = drift(step, embeddings, hidden_size);
  if (needs.surprisal) seen.surprisal = std::max(-last.log_prob, 0.0f);
  seen.token = step.token;
  seen.features = sequence.episode.features(key_count);
  seen.previous_action = sequence.episode.previous_action();
  seen.step = sequence.episode.steps() + 1;
  seen.key_count = key_count;
  seen.effective = sequence.episode.effective(key_count);
  return seen;
}

// Chooses every step's action, batched per policy.
std::vector<PolicyStep> choose(std::span<ControlledStep> steps,
                               const std::vector<Observation>& observations) {
  // Grouped by policy in order of first appearance, so that the result does not depend on
  // addresses.
  std::vector<const Policy*> policies;
  for (const ControlledStep& step : steps)
    if (!step.controlled->dense &&
        std::find(policies.begin(), policies.end(), step.controlled->policy) == policies.end())
      policies.push_back(step.controlled->policy);

  std::vector<PolicyStep> chosen(steps.size());
  for (size_t i = 0; i < steps.size(); ++i)
    if (steps[i].controlled->dense)
      chosen[i].action = steps[i].controlled->policy->space().dense_index();
  std::vector<PolicyStep> group;
  std::vector<size_t> members;
  for (const Policy* policy : policies) {
    group.clear();
    members.clear();
    for (size_t i = 0; i < steps.size(); ++i) {
      if (steps[i].controlled->policy != policy || steps[i].controlled->dense) continue;
      group.push_back({steps[i].controlled->state.get(), &observations[i]});
      members.push_back(i);
    }
    policy->next(group);
    for (size_t i = 0; i < group.size(); ++i) chosen[members[i]] = group[i];
  }
  return chosen;
}

void fill_record(StepRecord& record, const Observation& seen, const PolicyStep& chosen,
                 int executed, size_t hidden_size) {
  record.features = seen.features;
  record.previous_action = seen.previous_action;
  record.action = executed;
  record.effective = seen.effective;
  record.log_prob = chosen.log_prob;
  record.surprisal = seen.surprisal;
  const auto copy = [&](const float* from, std::vector<float>& to) {
    from ? to.assign(from, from + hidden_size) : to.clear();
  };
  copy(seen.hidden, record.hidden);
  copy(seen.embedding, record.embedding);
}

// What the engine is asked for: the caller's outputs, plus what the policy observes at the next
// step.
OutputRequest outputs(ControlledStep& step, size_t hidden_size) {
  Controlled& sequence = *step.controlled;
  const Policy::Needs needs = sequence.policy->needs();
  LastPosition& last = sequence.last;
  OutputRequest out = step.out;
  if (needs.drift) last.earlier_hidden = last.hidden;
  sequence.previous_token = step.token;
  if (needs.hidden || needs.drift || out.hidden) {
    last.hidden.resize(hidden_size);
    out.hidden = last.hidden.data();
  }
  if (needs.entropy) out.entropy = &last.entropy;
  last.log_prob = std::numeric_limits<float>::quiet_NaN();  // it was of this step's token
  if (needs.surprisal && out.target >= 0) out.log_prob = &last.log_prob;
  return out;
}

void copy_to_caller(const ControlledStep& step) {
  const LastPosition& last = step.controlled->last;
  const Policy::Needs needs = step.controlled->policy->needs();
  if (step.out.hidden) std::copy(last.hidden.begin(), last.hidden.end(), step.out.hidden);
  if (step.out.entropy && needs.entropy) *step.out.entropy = last.entropy;
  if (step.out.log_prob && needs.surprisal) *step.out.log_prob = last.log_prob;
}

}  // namespace

Controlled begin_controlled(std::unique_ptr<Sequence> sequence, const Policy& policy,
                            const Budget& budget, int horizon, const EpisodeId& id,
                            LastPosition last, int32_t previous_token) {
  const SequenceOptions& options = sequence->options();
  Controlled controlled{
      .sequence = std::move(sequence),
      .policy = &policy,
      .state = nullptr,
      .episode =
          Episode(policy.space(), budget, {horizon, options.sinks, options.window, policy.costs()}),
      .last = std::move(last),
      .previous_token = previous_token,
      .dense = false};
  controlled.state = policy.begin(controlled.episode.budget(), horizon, id);
  return controlled;
}

void begin_episode(Controlled& controlled, const Budget& budget, int horizon, const EpisodeId& id) {
  const SequenceOptions& options = controlled.sequence->options();
  controlled.episode =
      Episode(controlled.policy->space(), budget,
              {horizon, options.sinks, options.window, controlled.policy->costs()});
  controlled.state = controlled.policy->begin(controlled.episode.budget(), horizon, id);
}

Policy::Needs needs_of_both(const Policy::Needs& one, const Policy::Needs& other) {
  return {.hidden = one.hidden || other.hidden,
          .embedding = one.embedding || other.embedding,
          .entropy = one.entropy || other.entropy,
          .drift = one.drift || other.drift,
          .surprisal = one.surprisal || other.surprisal};
}

ExtendItem observed_extend(Sequence& sequence, std::span<const int32_t> tokens,
                           const AfterExtend& after, const Policy::Needs& needs, size_t hidden_size,
                           LastPosition& last) {
  const size_t end = tokens.size() - 1;
  ExtendItem item{&sequence, tokens, {}};
  // Entropy, drift and surprisal of the next step are those of a dense prefix as well.
  if (needs.drift && end > 0 && !after.prompt) {
    last.earlier_hidden.resize(hidden_size);
    item.wanted.push_back({end - 1, {.hidden = last.earlier_hidden.data()}});
  }
  last.hidden.resize(hidden_size);
  OutputRequest out{.hidden = last.hidden.data()};
  if (needs.entropy) out.entropy = &last.entropy;
  if (needs.surprisal) {
    out.target = after.token;
    out.log_prob = &last.log_prob;
  }
  item.wanted.push_back({end, out});
  return item;
}

void decode_step(FrozenModel& model, std::span<ControlledStep> steps, StepTimes* times) {
  const auto hidden_size = static_cast<size_t>(model.config().hidden_size);
  const Stopwatch deciding;

  std::vector<Observation> observations;
  Embeddings embeddings(model);
  observations.reserve(steps.size());
  for (const ControlledStep& step : steps) {
    assert(!step.controlled->episode.finished() && "the caller begins a new episode");
    assert(step.controlled->episode.space() == step.controlled->policy->space());
    observations.push_back(observe(step, embeddings, hidden_size));
  }
  const std::vector<PolicyStep> chosen = choose(steps, observations);

  std::vector<DecodeItem> items;
  items.reserve(steps.size());
  for (size_t i = 0; i < steps.size(); ++i) {
    ControlledStep& step = steps[i];
    Episode& episode = step.controlled->episode;
    const int executed = episode.record(chosen[i].action, observations[i].key_count);
    if (step.record) fill_record(*step.record, observations[i], chosen[i], executed, hidden_size);
    items.push_back({step.controlled->sequence.get(), step.token, episode.space().action(executed),
                     outputs(step, hidden_size), step.cost});
  }
  if (times) times->policy_seconds += deciding.seconds();

  const Stopwatch executing;
  model.decode(items);
  for (const ControlledStep& step : steps) copy_to_caller(step);
  if (times) times->model_seconds += executing.seconds();
}

}  // namespace sol
