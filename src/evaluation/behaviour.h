// What a policy spends on which tokens: beyond the paper, to see what it has learned.
#pragma once

#include <string>
#include <vector>

#include "evaluation/perplexity.h"
#include "evaluation/sweep.h"
#include "sol/tokenizer.h"

namespace sol {

// What a token is, from its text.
enum class TokenKind { word_start, word_inside, number, punctuation, line_break, other };
std::string_view to_string(TokenKind kind);
// `text` as inside a text (Tokenizer::token_bytes): " the" starts a word, "ing" goes on with one.
TokenKind kind_of(std::string_view text);

// Means over the effective steps of one group.
struct StepGroup {
  std::string label;
  int64_t steps = 0;
  Budget spent;          // mean κ, ρ, η
  double net_keep = 0;   // of these
  double surprisal = 0;  // of the target under the dense model, mean, nats
  double increase = 0;   // of the target's surprisal under the policy, over dense, mean, nats
};

// Groups hold the steps of all budgets.
struct Behaviour {
  std::vector<StepGroup> by_surprisal;  // tenths of the steps, by the target's surprisal when dense
  std::vector<StepGroup> by_previous;  // likewise by the current token's, which the policy can know
  std::vector<StepGroup> by_step;      // t = 1..T
  std::vector<StepGroup> by_kind;      // of the current token
  // Spearman's rank correlation of a step's net keep-rate with the surprisal of its target, and of
  // the current token: the mean over budgets of each one's.
  double rank_correlation = 0, rank_correlation_previous = 0;
};

// Plays `policy` at each budget on every block and compares with the dense run. `kinds`: of every
// token id. Errors as BlockEvaluator::run; also when there is no budget or no effective step, or an
// id without a kind.
Behaviour run_behaviour(BlockEvaluator& evaluator, const BlockDataset& data, const Policy& policy,
                        const std::vector<Budget>& budgets, const std::vector<TokenKind>& kinds,
                        const SweepProgress& progress = {}, std::stop_token stop = {});

// Of every id below vocab_size(); `other` for ids that no token has.
std::vector<TokenKind> token_kinds(const Tokenizer& tokenizer);

}  // namespace sol
