#include "evaluation/free_generation.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "base/fail.h"
#include "policy/generation.h"
#include "policy/policies.h"

namespace sol {
namespace {

using Texts = std::vector<std::vector<int32_t>>;  // per prompt

class Runner {
 public:
  Runner(FrozenModel& model, const BlockDataset& blocks, const FreeGenerationOptions& options,
         int64_t runs, const SweepProgress& progress, std::stop_token stop)
      : model_(model),
        blocks_(blocks),
        options_(options),
        total_(runs * options.prompts),
        progress_(progress),
        stop_(stop) {}

  struct Run {
    Texts texts;
    FreeOutcome outcome;
  };

  Run run(const Policy& policy, const Budget& budget) {
    Run run;
    run.outcome.asked = budget;
    double kappa = 0, rho = 0, eta = 0;
    for (int first = 0; first < options_.prompts; first += options_.batch) {
      const int count = std::min(options_.batch, options_.prompts - first);
      for (GenerationResult& result : generate_batch(policy, budget, first, count)) {
        kappa += static_cast<double>(result.realised.kappa);
        rho += static_cast<double>(result.realised.rho);
        eta += static_cast<double>(result.realised.eta);
        run.texts.push_back(std::move(result.tokens));
      }
      done_ += count;
      if (progress_) progress_(done_, total_);
    }
    const auto n = static_cast<double>(options_.prompts);
    run.outcome.realised = {static_cast<float>(kappa / n), static_cast<float>(rho / n),
                            static_cast<float>(eta / n)};
    run.outcome.perplexity = dense_perplexity(run.texts);
    for (const auto& text : run.texts) run.outcome.repetition += repeated_share(text, 4) / n;
    return run;
  }

 private:
  std::vector<int32_t> prompt(int block) const {
    const auto ids = blocks_.block(block).first(static_cast<size_t>(options_.prompt_tokens));
    return {ids.begin(), ids.end()};
  }

  std::vector<GenerationResult> generate_batch(const Policy& policy, const Budget& budget,
                                               int first, int count) {
    std::vector<std::unique_ptr<Generation>> generations;
    std::vector<Generation*> running;
    for (int i = first; i < first + count; ++i) {
      GenerationOptions options;
      options.sequence = options_.sequence;
      options.budget = budget;
      options.horizon = options_.horizon;
      options.max_tokens = options_.tokens;
      options.ignore_end = true;
      options.index = static_cast<uint64_t>(i);
      generations.push_back(std::make_unique<Generation>(model_, policy, prompt(i), options));
      running.push_back(generations.back().get());
    }
    std::vector<ControlledStep> steps(generations.size());
    for (int t = 0; t < options_.tokens; ++t) {
      if (stop_.stop_requested()) throw Cancelled();
      run_dense(model_, running, stop_);
      for (size_t i = 0; i < steps.size(); ++i) steps[i] = running[i]->next_step();
      decode_step(model_, steps);
      for (Generation* generation : running) generation->complete_step();
    }
    std::vector<GenerationResult> results;
    for (Generation* generation : running) results.push_back(std::move(generation->result()));
    return results;
  }

  // Of the generated tokens, each after everything before it, all computed densely.
  double dense_perplexity(const Texts& texts) {
    double nll = 0;
    for (size_t i = 0; i < texts.size(); ++i) {
      std::vector<int32_t> ids = prompt(static_cast<int>(i));
      const size_t known = ids.size();
      ids.insert(ids.end(), texts[i].begin(), texts[i].end());
      std::vector<float> log_probs(texts[i].size());
      auto sequence = model_.create(options_.sequence);
      ExtendItem item{sequence.get(), std::span(ids).first(ids.size() - 1), {}};
      for (size_t t = 0; t < log_probs.size(); ++t) {
        OutputRequest out;
        out.target = texts[i][t];
        out.log_prob = &log_probs[t];
        item.wanted.push_back({known - 1 + t, out});
      }
      model_.extend({&item, 1}, stop_);
      for (const float log_prob : log_probs) nll -= static_cast<double>(log_prob);
    }
    return std::exp(nll / (static_cast<double>(texts.size()) * options_.tokens));
  }

  FrozenModel& model_;
  const BlockDataset& blocks_;
  const FreeGenerationOptions& options_;
  int64_t done_ = 0, total_;
  const SweepProgress& progress_;
  std::stop_token stop_;
};

void compare(const Texts& texts, const Texts& dense, FreeOutcome& outcome) {
  const auto n = static_cast<double>(texts.size());
  for (size_t i = 0; i < texts.size(); ++i) {
    size_t same = 0, before = texts[i].size();
    for (size_t t = 0; t < texts[i].size(); ++t) {
      if (texts[i][t] == dense[i][t])
        ++same;
      else
        before = std::min(before, t);
    }
    outcome.agreement += static_cast<double>(same) / static_cast<double>(texts[i].size()) / n;
    outcome.first_difference += static_cast<double>(before) / n;
  }
}

}  // namespace

double repeated_share(const std::vector<int32_t>& tokens, int n) {
  const auto width = static_cast<ptrdiff_t>(n);
  if (static_cast<ptrdiff_t>(tokens.size()) < width) return 0;
  std::set<std::vector<int32_t>> seen;
  int64_t repeated = 0, all = 0;
  for (auto at = tokens.begin(); tokens.end() - at >= width; ++at) {
    ++all;
    if (!seen.insert({at, at + width}).second) ++repeated;
  }
  return static_cast<double>(repeated) / static_cast<double>(all);
}

FreeGeneration run_free_generation(FrozenModel& model, const BlockDataset& blocks,
                                   const Policy& policy, const Policy& fixed,
                                   const std::vector<Budget>& budgets,
                                   const FreeGenerationOptions& options,
                                   const SweepProgress& progress, std::stop_token stop) {
  if (budgets.empty()) fail("free generation needs at least one budget");
  if (options.prompts < 1 || options.prompt_tokens < 1 || options.tokens < 1 || options.batch < 1)
    fail(
        "free generation: {} prompts of {} tokens, {} tokens each, {} together: all must be "
        "positive",
        options.prompts, options.prompt_tokens, options.tokens, options.batch);
  const int64_t needed = int64_t{options.prompt_tokens} + options.tokens;
  if (needed > model.config().max_position_embeddings)
    fail("free generation of {} tokens after {} needs {} positions, but the model has {}",
         options.tokens, options.prompt_tokens, needed, model.config().max_position_embeddings);
  if (blocks.block_length() != options.block_length())
    fail("the data is cut into blocks of {} ids, but free generation needs {}",
         blocks.block_length(), options.block_length());
  if (blocks.size() < options.prompts)
    fail("free generation needs {} prompts, but the text has only {} blocks", options.prompts,
         blocks.size());

  Runner runner(model, blocks, options, 1 + 2 * static_cast<int64_t>(budgets.size()), progress,
                stop);
  const auto always_dense = make_constant_policy(Action{});
  FreeGeneration found;
  const Runner::Run dense = runner.run(*always_dense, Budget{});
  found.dense = dense.outcome;
  found.dense.net_keep = 1;
  compare(dense.texts, dense.texts, found.dense);
  const ActionSpace& space = policy.space();
  for (const Budget& budget : budgets) {
    Runner::Run learned = runner.run(policy, budget);
    Runner::Run baseline = runner.run(fixed, learned.outcome.realised);
    for (Runner::Run* run : {&learned, &baseline}) {
      run->outcome.net_keep = space.net_keep_rate(run->outcome.realised);
      compare(run->texts, dense.texts, run->outcome);
    }
    found.pairs.push_back({learned.outcome, baseline.outcome});
  }
  return found;
}

}  // namespace sol
