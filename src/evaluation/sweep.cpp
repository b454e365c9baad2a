#include "evaluation/sweep.h"

#include <algorithm>
#include <numeric>

#include "base/fail.h"
#include "base/stopwatch.h"
#include "policy/policies.h"

namespace sol {

std::string_view to_string(Matching matching) {
  return matching == Matching::realised ? "realised" : "requested";
}

double Outcome::nats_per_token() const {
  return std::accumulate(nll.begin(), nll.end(), 0.0) / static_cast<double>(steps);
}

Outcome make_outcome(const Budget& asked, std::span<const BlockResult> blocks,
                     const ActionSpace& space) {
  Outcome outcome;
  outcome.asked = asked;
  outcome.realised = mean_realised(blocks);
  outcome.net_keep = space.net_keep_rate(outcome.realised);
  outcome.perplexity = perplexity(blocks);
  outcome.attended = mean_attended(blocks);
  outcome.time = mean_time(blocks);
  outcome.seconds_per_token = mean_seconds(blocks);
  outcome.nll.reserve(blocks.size());
  for (const BlockResult& block : blocks) {
    outcome.steps += block.steps;
    outcome.effective_steps += block.effective_steps;
    outcome.nll.push_back(block.nll);
  }
  return outcome;
}

namespace {

// Arms of one pass, each with the place where its outcome goes.
struct Pass {
  std::vector<Arm> arms;
  std::vector<Outcome*> places;

  void add(const Policy* policy, const Budget& budget, size_t rollout, Outcome& place) {
    arms.push_back({policy, budget, static_cast<uint32_t>(rollout)});
    places.push_back(&place);
  }
};

// What the policy chose half of the data away: neighbouring blocks are of one article. One rollout
// per point.
std::unique_ptr<Policy> schedules_from_elsewhere(
    const ActionSpace& space, const std::vector<int64_t>& blocks,
    const std::vector<std::vector<BlockResult>>& points) {
  RecordedSchedules schedules;
  for (size_t point = 0; point < points.size(); ++point)
    for (size_t b = 0; b < blocks.size(); ++b)
      schedules[{static_cast<uint64_t>(blocks[b]), static_cast<uint32_t>(point)}] =
          points[point][(b + blocks.size() / 2) % blocks.size()].actions;
  return make_replay_policy(space, std::move(schedules));
}

// So many baselines are played at the requested budgets.
size_t at_requested(const SweepRequest& request) {
  return std::min(request.requested_baselines, request.baselines.size());
}

void check_request(const SweepRequest& request, size_t blocks) {
  if (!request.policy) fail("a sweep needs a policy");
  if (request.budgets.empty()) fail("a sweep needs at least one budget");
  if (!request.inside.empty() && request.inside.size() != request.budgets.size())
    fail("a sweep of {} budgets was told of {} whether they lie inside the trained ranges",
         request.budgets.size(), request.inside.size());

  if (request.elsewhere && !request.match_realised)
    fail("baseline {} has the averages that the policy realised, not the requested ones",
         elsewhere_baseline);
  if (request.elsewhere && blocks < 2)
    fail("baseline {} plays schedules of another block; here there is one only",
         elsewhere_baseline);

  if (request.policy->costs() && at_requested(request) > 0)
    fail(
        "policy {} is asked for times, baselines for averages: they can be compared at the "
        "averages that it realises only",
        request.policy->name());
  for (const Policy* baseline : request.baselines)
    if (baseline->costs())
      fail("baseline {} is asked for times, and is compared at averages: name it as the policy",
           baseline->name());
}

// With a place for every outcome, of which there is none yet.
Sweep planned(const SweepRequest& request, const BlockEvaluator& evaluator) {
  const ActionSpace& space = request.policy->space();
  const bool by_time = request.policy->costs() != nullptr;
  Sweep sweep{.by_time = by_time,
              .policy = request.policy->name(),
              .baselines = {},
              .space = space,
              .protocol = evaluator.options(),
              .blocks = evaluator.indices(),
              .points = {},
              .dense = {},
              .seconds = 0,
              .decoded_tokens = 0};
  for (const Policy* baseline : request.baselines) sweep.baselines.push_back(baseline->name());
  if (request.elsewhere) sweep.baselines.emplace_back(elsewhere_baseline);

  sweep.points.resize(request.budgets.size());
  for (size_t i = 0; i < sweep.points.size(); ++i) {
    SweepPoint& point = sweep.points[i];
    point.requested = by_time ? request.budgets[i] : space.clamp_off_axes(request.budgets[i]);
    point.inside = request.inside.empty() || request.inside[i];
    if (request.match_realised) point.realised.resize(sweep.baselines.size());
    point.requested_budget.resize(at_requested(request));
  }
  return sweep;
}

// The policy, the dense run, and baselines at the requested budgets.
Pass first_pass(const SweepRequest& request, const Policy& dense, Sweep& sweep) {
  Pass first;
  for (size_t i = 0; i < sweep.points.size(); ++i)
    first.add(request.policy, sweep.points[i].requested, i, sweep.points[i].policy);
  first.add(&dense, Budget{}, 0, sweep.dense);
  for (size_t i = 0; i < sweep.points.size(); ++i) {
    SweepPoint& point = sweep.points[i];
    for (size_t b = 0; b < point.requested_budget.size(); ++b)
      first.add(request.baselines[b], point.requested, i, point.requested_budget[b]);
  }
  return first;
}

// Baselines at the averages that the policy realised in the first; `elsewhere` may be null.
Pass second_pass(const SweepRequest& request, const Policy* elsewhere, Sweep& sweep) {
  Pass second;
  for (size_t i = 0; i < sweep.points.size() && request.match_realised; ++i) {
    SweepPoint& point = sweep.points[i];
    for (size_t b = 0; b < request.baselines.size(); ++b)
      second.add(request.baselines[b], point.policy.realised, i, point.realised[b]);
  }
  for (size_t i = 0; i < sweep.points.size() && elsewhere; ++i) {
    SweepPoint& point = sweep.points[i];
    second.add(elsewhere, point.policy.realised, i, point.realised.back());
  }
  return second;
}

}  // namespace

std::vector<std::unique_ptr<Policy>> add_baselines(
    SweepRequest& request, const std::vector<std::string>& names,
    const std::function<std::unique_ptr<Policy>(const std::string& name)>& make) {
  std::vector<std::unique_ptr<Policy>> made;
  for (const std::string& name : names) {
    if (name == elsewhere_baseline) {
      request.elsewhere = true;
      continue;
    }
    made.push_back(make(name));
    request.baselines.push_back(made.back().get());
  }
  return made;
}

Sweep run_sweep(BlockEvaluator& evaluator, const SweepRequest& request,
                const SweepProgress& progress, std::stop_token stop) {
  check_request(request, evaluator.indices().size());
  Sweep sweep = planned(request, evaluator);

  const auto blocks = static_cast<int64_t>(sweep.blocks.size());
  const auto points = static_cast<int64_t>(sweep.points.size());
  const auto at_realised = static_cast<int64_t>(
      (request.match_realised ? request.baselines.size() : 0) + (request.elsewhere ? 1 : 0));
  const int64_t total =
      blocks * (1 + points * (1 + static_cast<int64_t>(at_requested(request)) + at_realised));
  int64_t before = 0;
  const auto run = [&](const Pass& pass, bool keep_actions) {
    const auto arms = static_cast<int64_t>(pass.arms.size());
    auto results = evaluator.run(
        pass.arms, keep_actions,
        [&](int64_t done, int64_t) {
          if (progress) progress(before + done * arms, total);
        },
        stop);
    before += blocks * arms;
    for (size_t i = 0; i < results.size(); ++i) {
      *pass.places[i] = make_outcome(pass.arms[i].budget, results[i], sweep.space);
      pass.places[i]->asked_time = pass.arms[i].policy->costs() != nullptr;
    }
    return results;
  };

  const Stopwatch stopwatch;
  const auto dense = make_constant_policy(Action{});
  auto chosen = run(first_pass(request, *dense, sweep), request.elsewhere);
  chosen.resize(sweep.points.size());

  std::unique_ptr<Policy> elsewhere;
  if (request.elsewhere) elsewhere = schedules_from_elsewhere(sweep.space, sweep.blocks, chosen);
  const Pass second = second_pass(request, elsewhere.get(), sweep);
  if (!second.arms.empty()) run(second, false);
  sweep.seconds = stopwatch.seconds();
  sweep.decoded_tokens = before * sweep.protocol.horizon;
  return sweep;
}

}  // namespace sol
