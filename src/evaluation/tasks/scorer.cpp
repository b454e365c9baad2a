#include "evaluation/tasks/scorer.h"

#include <algorithm>
#include <cmath>

#include "base/fail.h"
#include "policy/controlled.h"

namespace sol {
namespace {

// Tokens whose keys and values should be in memory together: enough rows for the matrix products.
constexpr size_t tokens_together = 8192;

// What all contexts begin with, their last tokens left out: those are decoded, or must answer.
// `next_too`: only as far as one more token is the same for all, so that one distribution tells the
// next token's probability in all of them.
size_t shared_length(const RequestGroup& group, bool next_too) {
  const std::vector<TokenRequest>& requests = group.requests;
  const size_t next = next_too ? 1 : 0;
  size_t length = requests.front().context - 1 + next;
  for (const TokenRequest& request : requests) {
    const auto end = std::min(length, request.context - 1 + next);
    const auto& first = requests.front().tokens;
    length = static_cast<size_t>(std::mismatch(first.begin(),
                                               first.begin() + static_cast<std::ptrdiff_t>(end),
                                               request.tokens.begin())
                                     .first -
                                 first.begin());
  }
  return length - std::min(length, next);
}

void require_finite(float log_prob, uint64_t document, const char* how) {
  if (std::isfinite(log_prob)) return;
  fail(
      "document {} ({}): a log-probability is not finite; the model's weights or the arithmetic "
      "are broken",
      document, how);
}

void check_groups(std::span<const RequestGroup> groups, int positions) {
  for (const RequestGroup& group : groups) {
    if (group.requests.empty()) fail("document {} has no request", group.id);
    for (const TokenRequest& request : group.requests)
      if (request.context < 1 || request.context >= request.tokens.size() ||
          request.tokens.size() > static_cast<size_t>(positions) + 1)
        fail(
            "document {}: a request of {} tokens, {} of them context, does not fit the model's {} "
            "positions",
            group.id, request.tokens.size(), request.context, positions);
  }
}

}  // namespace

std::string_view to_string(ScoringMode mode) {
  return mode == ScoringMode::prefill ? "prefill" : "decode";
}

StepTotals sum_of(std::span<const StepTotals> totals) {
  StepTotals sum;
  double kappa = 0, rho = 0, eta = 0;
  for (const StepTotals& one : totals) {
    const auto weight = static_cast<double>(one.effective_steps);
    kappa += weight * static_cast<double>(one.realised.kappa);
    rho += weight * static_cast<double>(one.realised.rho);
    eta += weight * static_cast<double>(one.realised.eta);
    sum.steps += one.steps;
    sum.effective_steps += one.effective_steps;
    sum.attended += one.attended;
  }
  if (sum.effective_steps > 0) {
    const auto n = static_cast<double>(sum.effective_steps);
    sum.realised = {static_cast<float>(kappa / n), static_cast<float>(rho / n),
                    static_cast<float>(eta / n)};
  }
  return sum;
}

// A sequence after a dense pass, with what a policy observes there.
struct Scorer::Dense {
  std::unique_ptr<Sequence> sequence;
  LastPosition last;  // without any token before it a policy sees zeros, as in generation
};

// One request under one arm.
struct Scorer::Running {
  const Arm* arm;
  uint64_t document;
  const TokenRequest* request;
  RequestScore* score;
  Controlled controlled;
  uint64_t episode = 0;
  size_t next;              // index of the token to be decoded
  bool compressed = false;  // some step since the last refresh was not dense
  BudgetAverage<double> average = {};
  float log_prob = 0;
  StepCost cost = {};

  bool finished() const { return next + 1 >= request->tokens.size(); }
  EpisodeId id() const {
    return {.sequence = document,
            .episode = episode,
            .rollout = arm->rollout + static_cast<uint32_t>(document)};
  }
};

Scorer::Scorer(FrozenModel& model, const ScoringOptions& options)
    : model_(model),
      options_(options),
      hidden_size_(static_cast<size_t>(model.config().hidden_size)) {
  if (options.horizon < 1 || options.batch < 1)
    fail("scoring: horizon ({}) and batch ({}) must be positive", options.horizon, options.batch);
}

size_t Scorer::together(std::span<const RequestGroup> groups, size_t first) {
  size_t tokens = 0, end = first;
  for (; end < groups.size(); ++end) {
    for (const TokenRequest& request : groups[end].requests) tokens += request.tokens.size();
    if (end > first && tokens > tokens_together) break;
  }
  return end - first;
}

std::vector<Scorer::Dense> Scorer::shared_prefixes(std::span<const RequestGroup> groups,
                                                   const Policy::Needs& needs,
                                                   std::stop_token stop) {
  std::vector<Dense> prefixes(groups.size());
  std::vector<ExtendItem> items;
  for (size_t i = 0; i < groups.size(); ++i) {
    Dense& prefix = prefixes[i];
    prefix.sequence = model_.create(options_.sequence);
    prefix.last = {.hidden = std::vector<float>(hidden_size_, 0.0f), .log_prob = 0.0f};
    const auto& tokens = groups[i].requests[0].tokens;
    const size_t length = shared_length(groups[i], needs.surprisal);
    if (length > 0)
      items.push_back(observed_extend(*prefix.sequence, std::span(tokens).first(length),
                                      {.token = tokens[length], .prompt = true}, needs,
                                      hidden_size_, prefix.last));
  }
  if (!items.empty()) model_.extend(items, stop);
  return prefixes;
}

std::vector<std::vector<RequestScore>> Scorer::prefill(std::span<const RequestGroup> groups,
                                                       std::stop_token stop) {
  check_groups(groups, model_.config().max_position_embeddings);
  if (stop.stop_requested()) throw Cancelled();
  const std::vector<Dense> prefixes = shared_prefixes(groups, {}, stop);
  std::vector<std::unique_ptr<Sequence>> sequences;
  std::vector<std::vector<float>> log_probs;
  std::vector<ExtendItem> items;
  for (size_t i = 0; i < groups.size(); ++i) {
    const auto at = static_cast<size_t>(prefixes[i].sequence->length());
    auto children = model_.fork(*prefixes[i].sequence, static_cast<int>(groups[i].requests.size()));
    for (size_t r = 0; r < children.size(); ++r) {
      const TokenRequest& request = groups[i].requests[r];
      const auto tokens = std::span(request.tokens);
      log_probs.emplace_back(request.scored());
      ExtendItem item{children[r].get(), tokens.subspan(at, tokens.size() - 1 - at), {}};
      for (size_t k = 0; k < request.scored(); ++k) {
        OutputRequest out;
        out.target = tokens[request.context + k];
        out.log_prob = &log_probs.back()[k];
        item.wanted.push_back({request.context - 1 + k - at, out});
      }
      items.push_back(std::move(item));
      sequences.push_back(std::move(children[r]));
    }
  }
  model_.extend(items, stop);
  std::vector<std::vector<RequestScore>> results(groups.size());
  auto of_item = log_probs.begin();
  for (size_t i = 0; i < groups.size(); ++i)
    for (size_t r = 0; r < groups[i].requests.size(); ++r) {
      RequestScore& score = results[i].emplace_back();
      for (const float log_prob : *of_item++) {
        require_finite(log_prob, groups[i].id, "prefill");
        score.log_likelihood += static_cast<double>(log_prob);
      }
    }
  return results;
}

// Each request's context without its last token.
std::vector<Scorer::Dense> Scorer::contexts(std::span<const RequestGroup> groups,
                                            const Policy::Needs& needs, std::stop_token stop) {
  const std::vector<Dense> prefixes = shared_prefixes(groups, needs, stop);
  std::vector<Dense> contexts;
  for (size_t i = 0; i < groups.size(); ++i) {
    auto children = model_.fork(*prefixes[i].sequence, static_cast<int>(groups[i].requests.size()));
    for (auto& child : children) contexts.push_back({std::move(child), prefixes[i].last});
  }
  std::vector<ExtendItem> items;
  auto context = contexts.begin();
  for (const RequestGroup& group : groups)
    for (const TokenRequest& request : group.requests) {
      Dense& dense = *context++;
      const auto at = static_cast<size_t>(dense.sequence->length());
      const auto rest = std::span(request.tokens).subspan(at, request.context - 1 - at);
      if (rest.empty()) continue;
      items.push_back(observed_extend(
          *dense.sequence, rest, {.token = request.tokens[request.context - 1], .prompt = true},
          needs, hidden_size_, dense.last));
    }
  if (!items.empty()) model_.extend(items, stop);
  return contexts;
}

std::vector<Scorer::Running> Scorer::begin(std::span<const RequestGroup> groups,
                                           std::span<const Arm> arms, std::stop_token stop) {
  Policy::Needs needs;
  for (const Arm& arm : arms) needs = needs_of_both(needs, arm.policy->needs());
  const std::vector<Dense> dense = contexts(groups, needs, stop);
  std::vector<Running> running;
  auto context = dense.begin();
  for (const RequestGroup& group : groups)
    for (const TokenRequest& request : group.requests) {
      auto children = model_.fork(*context->sequence, static_cast<int>(arms.size()));
      const int32_t before = request.context > 1 ? request.tokens[request.context - 2] : -1;
      for (size_t a = 0; a < arms.size(); ++a) {
        const EpisodeId id{.sequence = group.id,
                           .rollout = arms[a].rollout + static_cast<uint32_t>(group.id)};
        running.push_back(
            {.arm = &arms[a],
             .document = group.id,
             .request = &request,
             .score = nullptr,
             .controlled = begin_controlled(std::move(children[a]), *arms[a].policy, arms[a].budget,
                                            options_.horizon, id, context->last, before),
             .next = request.context - 1});
      }
      ++context;
    }
  return running;
}

// Begins the next episode where one is over; what it skipped is computed again, as in Generation.
void Scorer::refresh(std::span<Running> running, std::stop_token stop) {
  std::vector<ExtendItem> items;
  for (Running& one : running) {
    if (!one.controlled.episode.finished()) continue;
    Controlled& controlled = one.controlled;
    if (one.compressed) {
      const auto horizon = static_cast<size_t>(options_.horizon);
      model_.truncate(*controlled.sequence, static_cast<int>(one.next - horizon));
      items.push_back(observed_extend(
          *controlled.sequence, std::span(one.request->tokens).subspan(one.next - horizon, horizon),
          {.token = one.request->tokens[one.next]}, controlled.policy->needs(), hidden_size_,
          controlled.last));
      one.compressed = false;
    }
    ++one.episode;
    begin_episode(controlled, one.arm->budget, options_.horizon, one.id());
  }
  if (!items.empty()) model_.extend(items, stop);
}

void Scorer::step(std::span<Running> running) {
  std::vector<ControlledStep> steps;
  for (Running& one : running) {
    ControlledStep step{&one.controlled, one.request->tokens[one.next], {}, &one.cost, nullptr};
    step.out.target = one.request->tokens[one.next + 1];
    step.out.log_prob = &one.log_prob;
    steps.push_back(step);
  }
  decode_step(model_, steps);
  for (Running& one : running) {
    require_finite(one.log_prob, one.document, one.arm->policy->name().c_str());
    const Episode& episode = one.controlled.episode;
    const Action action = episode.space().action(episode.previous_action());
    one.compressed = one.compressed || !action.dense();
    if (episode.effective(one.controlled.sequence->length())) one.average.add(action);
    StepTotals& spent = one.score->spent;
    ++spent.steps;
    spent.effective_steps = one.average.count();
    spent.realised = one.average.mean_or({});
    spent.attended += one.cost.attended;
    one.score->log_likelihood += static_cast<double>(one.log_prob);
    ++one.next;
  }
}

std::vector<std::vector<std::vector<RequestScore>>> Scorer::decode(
    std::span<const RequestGroup> groups, std::span<const Arm> arms,
    const ScoringProgress& progress, std::stop_token stop) {
  check_groups(groups, model_.config().max_position_embeddings);
  for (const Arm& arm : arms) check_budget(arm.budget);
  std::vector<std::vector<std::vector<RequestScore>>> results(
      arms.size(), std::vector<std::vector<RequestScore>>(groups.size()));
  int64_t total = 0, done = 0;  // steps
  for (size_t i = 0; i < groups.size(); ++i) {
    for (auto& arm : results) arm[i].resize(groups[i].requests.size());
    for (const TokenRequest& request : groups[i].requests)
      total += static_cast<int64_t>(request.scored() * arms.size());
  }
  if (arms.empty()) return results;

  std::vector<Running> jobs = begin(groups, arms, stop);
  size_t job = 0;
  for (size_t i = 0; i < groups.size(); ++i)
    for (size_t r = 0; r < groups[i].requests.size(); ++r)
      for (auto& arm : results) jobs[job++].score = &arm[i][r];
  // Those of equal length side by side, so that a batch stays full to its end.
  std::ranges::stable_sort(jobs, {}, [](const Running& one) { return one.request->scored(); });
  for (size_t begin = 0; begin < jobs.size();) {
    auto batch = std::span(jobs).subspan(
        begin, std::min(jobs.size() - begin, static_cast<size_t>(options_.batch)));
    begin += batch.size();
    while (!batch.empty()) {
      if (stop.stop_requested()) throw Cancelled();
      refresh(batch, stop);
      step(batch);
      done += static_cast<int64_t>(batch.size());
      while (!batch.empty() && batch.front().finished()) {
        batch.front().controlled.sequence.reset();  // its cache is needed no more
        batch = batch.subspan(1);
      }
      if (progress) progress(done, total);
    }
  }
  return results;
}

}  // namespace sol
