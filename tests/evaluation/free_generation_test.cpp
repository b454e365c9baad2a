#include "evaluation/free_generation.h"

#include <gtest/gtest.h>

#include <cmath>

#include "policy/generation.h"
#include "policy/policies.h"
#include "sol/error.h"
#include "support.h"

namespace sol {
namespace {

struct FreeGenerationTest : testing::Test {
  std::unique_ptr<FrozenModel> model =
      load_model(test::test_data() / "golden/tiny_untied_f32",
                 {.precision = Precision::f32, .deterministic = true});
  ActionSpace space{{0.1f, 1.0f}, {0.4f, 1.0f}, {4, 16}};
  std::unique_ptr<Policy> fixed = make_fixed_policy(space);
  std::unique_ptr<Policy> dense = make_constant_policy(Action{});
  FreeGenerationOptions options;

  void SetUp() override {
    options.prompts = 3;
    options.prompt_tokens = 20;
    options.tokens = 24;
    options.horizon = 8;
    options.batch = 2;
  }
  BlockDataset data() const {
    std::vector<int32_t> ids;
    for (int i = 0; i < 4 * options.block_length(); ++i) ids.push_back((i * 37 + i * i) % 320);
    return BlockDataset::from_ids(std::move(ids), options.block_length());
  }
  std::vector<int32_t> generated(const Policy& policy, const Budget& budget, int block) const {
    const BlockDataset blocks = data();
    const auto ids = blocks.block(block).first(20);
    GenerationOptions generation;
    generation.budget = budget;
    generation.horizon = 8;
    generation.max_tokens = 24;
    generation.ignore_end = true;
    generation.index = static_cast<uint64_t>(block);
    return generate(*model, policy, {ids.begin(), ids.end()}, generation).tokens;
  }
};

TEST_F(FreeGenerationTest, ComparesWithDenseGreedyText) {
  const Budget budget{0.4f, 0.6f, 0.5f};
  const FreeGeneration found =
      run_free_generation(*model, data(), *fixed, *fixed, {budget}, options);
  EXPECT_EQ(found.dense.agreement, 1);
  EXPECT_EQ(found.dense.first_difference, 24);
  EXPECT_EQ(found.dense.net_keep, 1);
  ASSERT_EQ(found.pairs.size(), 1u);
  const FreeOutcome& outcome = found.pairs[0].policy;
  EXPECT_NEAR(outcome.realised.kappa, 0.4, 0.1);
  EXPECT_EQ(found.pairs[0].fixed.asked, outcome.realised);

  // The same by hand, one generation at a time.
  double agreement = 0, first = 0, repetition = 0;
  for (int block = 0; block < 3; ++block) {
    const auto text = generated(*fixed, budget, block), reference = generated(*dense, {}, block);
    int same = 0, before = 24;
    for (int t = 23; t >= 0; --t) {
      const auto at = static_cast<size_t>(t);
      if (text[at] == reference[at])
        ++same;
      else
        before = t;
    }
    agreement += same / 24.0 / 3;
    first += before / 3.0;
    repetition += repeated_share(text, 4) / 3;
  }
  EXPECT_NEAR(outcome.agreement, agreement, 1e-12);
  EXPECT_NEAR(outcome.first_difference, first, 1e-12);
  EXPECT_NEAR(outcome.repetition, repetition, 1e-12);
  // Greedy text is what the dense model finds likeliest.
  EXPECT_GE(outcome.perplexity, 1);
}

TEST_F(FreeGenerationTest, PerplexityIsTheDenseModelsOfTheGeneratedTokens) {
  options.prompts = 1;
  const FreeGeneration found =
      run_free_generation(*model, data(), *fixed, *fixed, {Budget{}}, options);
  const BlockDataset blocks = data();
  const auto text = generated(*dense, {}, 0);
  auto sequence = model->create({});
  const auto prompt = blocks.block(0).first(20);
  ExtendItem item{sequence.get(), prompt.first(19), {}};
  model->extend({&item, 1});
  double nll = 0;
  for (size_t t = 0; t < text.size(); ++t) {
    float log_prob = 0;
    DecodeItem step{sequence.get(), t == 0 ? prompt[19] : text[t - 1], {}, {}, nullptr};
    step.out.target = text[t];
    step.out.log_prob = &log_prob;
    model->decode({&step, 1});
    nll -= static_cast<double>(log_prob);
  }
  EXPECT_NEAR(found.dense.perplexity, std::exp(nll / 24), 1e-3);
}

TEST_F(FreeGenerationTest, RefusesWhatCannotBeRun) {
  EXPECT_THROW(run_free_generation(*model, data(), *fixed, *fixed, {}, options), Error);
  const BlockDataset blocks = data();
  options.prompts = 5;
  EXPECT_THROW(run_free_generation(*model, blocks, *fixed, *fixed, {Budget{}}, options), Error);
  options.prompts = 3;
  options.tokens = 23;
  EXPECT_THROW(run_free_generation(*model, blocks, *fixed, *fixed, {Budget{}}, options), Error);
}

TEST(RepeatedShare, CountsWhatOccurredBefore) {
  EXPECT_EQ(repeated_share({1, 2, 3}, 4), 0);
  EXPECT_EQ(repeated_share({1, 2, 3, 4, 5}, 4), 0);
  EXPECT_EQ(repeated_share({7, 7, 7, 7, 7, 7}, 4), 2.0 / 3);
  EXPECT_EQ(repeated_share({1, 2, 1, 2, 1, 2}, 2), 3.0 / 5);
}

}  // namespace
}  // namespace sol
