#include "evaluation/behaviour.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "base/fail.h"
#include "policy/policies.h"

namespace sol {
namespace {

struct Step {
  Action action;
  double net_keep = 0;
  double dense = 0;      // surprisal of the target, nats
  double increase = 0;   // under the policy
  double previous = -1;  // of the current token, dense; -1: it is the prefix's last
  int t = 0;             // from 1
  size_t budget = 0;     // which of them
  TokenKind kind = TokenKind::other;
};

StepGroup summarised(const std::string& label, const std::vector<const Step*>& steps,
                     const ActionSpace& space) {
  StepGroup group;
  group.label = label;
  group.steps = static_cast<int64_t>(steps.size());
  BudgetAverage<double> average;
  for (const Step* step : steps) {
    average.add(step->action);
    group.surprisal += step->dense / static_cast<double>(steps.size());
    group.increase += step->increase / static_cast<double>(steps.size());
  }
  group.spent = average.mean_or({});
  group.net_keep = space.net_keep_rate(group.spent);
  return group;
}

// Ten groups of equal size, ascending in `key`.
std::vector<StepGroup> tenths(const std::vector<Step>& steps, double Step::*key,
                              const ActionSpace& space) {
  std::vector<const Step*> sorted;
  for (const Step& step : steps)
    if (step.*key >= 0) sorted.push_back(&step);
  std::ranges::stable_sort(sorted, {}, [&](const Step* step) { return step->*key; });
  std::vector<StepGroup> groups;
  for (size_t tenth = 0; tenth < 10; ++tenth) {
    const auto first = sorted.begin() + static_cast<ptrdiff_t>(sorted.size() * tenth / 10);
    const auto last = sorted.begin() + static_cast<ptrdiff_t>(sorted.size() * (tenth + 1) / 10);
    if (first == last) continue;
    groups.push_back(
        summarised(fmt::format("{}", tenth + 1), std::vector<const Step*>(first, last), space));
  }
  return groups;
}

// Ranks from 1; equal values share the mean of theirs.
std::vector<double> ranks(const std::vector<double>& values) {
  std::vector<size_t> order(values.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::sort(order, {}, [&](size_t i) { return values[i]; });
  std::vector<double> result(values.size());
  for (size_t begin = 0; begin < order.size();) {
    size_t end = begin;
    while (end < order.size() && values[order[end]] == values[order[begin]]) ++end;
    for (size_t i = begin; i < end; ++i)
      result[order[i]] = static_cast<double>(begin + 1 + end) / 2;
    begin = end;
  }
  return result;
}

// Spearman's, of one budget's steps; 0 where either side is all equal.
double rank_correlation(const std::vector<Step>& steps, size_t budget, double Step::*key) {
  std::vector<double> spent, other;
  for (const Step& step : steps) {
    if (step.budget != budget || step.*key < 0) continue;
    spent.push_back(step.net_keep);
    other.push_back(step.*key);
  }
  const std::vector<double> a = ranks(spent), b = ranks(other);
  const double mean = (static_cast<double>(a.size()) + 1) / 2;
  double ab = 0, aa = 0, bb = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    ab += (a[i] - mean) * (b[i] - mean);
    aa += (a[i] - mean) * (a[i] - mean);
    bb += (b[i] - mean) * (b[i] - mean);
  }
  return aa > 0 && bb > 0 ? ab / std::sqrt(aa * bb) : 0;
}

// Budgets apart: how much is spent differs most between them, which says nothing about tokens.
double mean_rank_correlation(const std::vector<Step>& steps, size_t budgets, double Step::*key) {
  double sum = 0;
  for (size_t budget = 0; budget < budgets; ++budget) sum += rank_correlation(steps, budget, key);
  return sum / static_cast<double>(budgets);
}

std::vector<StepGroup> grouped(const std::vector<Step>& steps, const ActionSpace& space, int count,
                               const std::function<int(const Step&)>& which,
                               const std::function<std::string(int)>& label) {
  std::vector<std::vector<const Step*>> members(static_cast<size_t>(count));
  for (const Step& step : steps) members[static_cast<size_t>(which(step))].push_back(&step);
  std::vector<StepGroup> groups;
  for (int i = 0; i < count; ++i)
    if (!members[static_cast<size_t>(i)].empty())
      groups.push_back(summarised(label(i), members[static_cast<size_t>(i)], space));
  return groups;
}

bool is_letter(unsigned char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c >= 0x80;
}
bool is_digit(unsigned char c) {
  return c >= '0' && c <= '9';
}

}  // namespace

std::string_view to_string(TokenKind kind) {
  switch (kind) {
    case TokenKind::word_start:
      return "start of a word";
    case TokenKind::word_inside:
      return "inside a word";
    case TokenKind::number:
      return "number";
    case TokenKind::punctuation:
      return "punctuation";
    case TokenKind::line_break:
      return "line break";
    case TokenKind::other:
      return "other";
  }
  return "";
}

TokenKind kind_of(std::string_view text) {
  if (text.find('\n') != std::string_view::npos) return TokenKind::line_break;
  const bool spaced = text.starts_with(' ');
  const size_t first = text.find_first_not_of(' ');
  if (first == std::string_view::npos) return TokenKind::other;
  const auto c = static_cast<unsigned char>(text[first]);
  if (is_digit(c)) return TokenKind::number;
  if (is_letter(c)) return spaced ? TokenKind::word_start : TokenKind::word_inside;
  return c > ' ' && c < 0x7f ? TokenKind::punctuation : TokenKind::other;
}

std::vector<TokenKind> token_kinds(const Tokenizer& tokenizer) {
  std::vector<TokenKind> kinds;
  for (int32_t id = 0; id < tokenizer.vocab_size(); ++id)
    // Not decoded alone, which may cost a word its leading space; a vocabulary may have gaps.
    kinds.push_back(tokenizer.has_token(id) ? kind_of(tokenizer.token_bytes(id))
                                            : TokenKind::other);
  return kinds;
}

Behaviour run_behaviour(BlockEvaluator& evaluator, const BlockDataset& data, const Policy& policy,
                        const std::vector<Budget>& budgets, const std::vector<TokenKind>& kinds,
                        const SweepProgress& progress, std::stop_token stop) {
  if (budgets.empty()) fail("what a policy does is looked at for at least one budget");
  const auto dense = make_constant_policy(Action{});
  std::vector<Arm> arms{{dense.get(), Budget{}, 0}};
  for (const Budget& budget : budgets) arms.push_back({&policy, budget, 0});
  const auto results = evaluator.run(arms, true, progress, stop);

  const ActionSpace& space = policy.space();
  const ProtocolOptions& protocol = evaluator.options();
  const EpisodeOptions episode{protocol.horizon, protocol.sequence.sinks, protocol.sequence.window};
  const Episode rule(space, Budget{}, episode);
  std::vector<Step> steps;
  for (size_t arm = 1; arm < results.size(); ++arm)
    for (size_t block = 0; block < results[arm].size(); ++block) {
      const BlockResult &played = results[arm][block], &reference = results[0][block];
      const auto ids = data.block(evaluator.indices()[block]);
      for (int t = 0; t < protocol.horizon; ++t) {
        if (!rule.effective(protocol.context + t + 1)) continue;
        const auto at = static_cast<size_t>(t);
        const auto token = static_cast<size_t>(ids[static_cast<size_t>(protocol.context) + at]);
        if (token >= kinds.size()) fail("token {} has no kind: only {} have", token, kinds.size());
        Step step;
        step.action = space.action(played.actions[at]);
        step.net_keep =
            space.net_keep_rate({step.action.kappa, step.action.rho, step.action.eta()});
        step.dense = -static_cast<double>(reference.log_probs[at]);
        step.increase = -static_cast<double>(played.log_probs[at]) - step.dense;
        if (t > 0) step.previous = -static_cast<double>(reference.log_probs[at - 1]);
        step.t = t + 1;
        step.budget = arm - 1;
        step.kind = kinds[token];
        steps.push_back(step);
      }
    }
  if (steps.empty())
    fail("none of the steps after {} tokens of context counts: there is nothing to look at",
         protocol.context);

  Behaviour behaviour;
  behaviour.by_surprisal = tenths(steps, &Step::dense, space);
  behaviour.by_previous = tenths(steps, &Step::previous, space);
  behaviour.by_step = grouped(
      steps, space, protocol.horizon, [](const Step& step) { return step.t - 1; },
      [](int i) { return fmt::format("{}", i + 1); });
  behaviour.by_kind = grouped(
      steps, space, static_cast<int>(TokenKind::other) + 1,
      [](const Step& step) { return static_cast<int>(step.kind); },
      [](int i) { return std::string(to_string(static_cast<TokenKind>(i))); });
  behaviour.rank_correlation = mean_rank_correlation(steps, budgets.size(), &Step::dense);
  behaviour.rank_correlation_previous =
      mean_rank_correlation(steps, budgets.size(), &Step::previous);
  return behaviour;
}

}  // namespace sol
