#include "engine/sampling.h"

#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <vector>

#include "sol/error.h"
#include "support.h"

namespace sol {
namespace {

const std::vector<float> logits{1.0f, 3.0f, 2.0f, 3.0f, -1.0f};

std::map<int32_t, int> histogram(const SamplingOptions& options, int draws = 20000) {
  Sampler sampler(options);
  std::map<int32_t, int> counts;
  for (int i = 0; i < draws; ++i) ++counts[sampler.sample(logits, static_cast<uint32_t>(i))];
  return counts;
}

TEST(Sampling, GreedyTakesTheLowestOfTies) {
  Sampler sampler({});
  EXPECT_EQ(sampler.sample(logits, 0), 1);
  EXPECT_EQ(argmax(logits), 1);
}

TEST(Sampling, FrequenciesFollowTheSoftmax) {
  const double temperature = 0.7;
  const auto counts = histogram({.temperature = temperature, .seed = 5});
  double total = 0;
  for (float x : logits) total += std::exp(x / temperature);
  for (size_t i = 0; i < logits.size(); ++i) {
    const double p = std::exp(logits[i] / temperature) / total;
    const double n =
        counts.contains(static_cast<int32_t>(i)) ? counts.at(static_cast<int32_t>(i)) : 0;
    EXPECT_NEAR(n / 20000, p, 5 * std::sqrt(p * (1 - p) / 20000)) << "token " << i;
  }
}

TEST(Sampling, DrawsDependOnSeedStepAndSequenceOnly) {
  Sampler a({.temperature = 1.5, .seed = 9}), b({.temperature = 1.5, .seed = 9});
  std::vector<int32_t> forward, backward;
  for (uint32_t t = 0; t < 64; ++t) forward.push_back(a.sample(logits, t));
  for (uint32_t t = 64; t-- > 0;) backward.insert(backward.begin(), b.sample(logits, t));
  EXPECT_EQ(forward, backward);

  Sampler other({.temperature = 1.5, .seed = 10});
  std::vector<int32_t> another_seed, another_sequence;
  for (uint32_t t = 0; t < 64; ++t) {
    another_seed.push_back(other.sample(logits, t));
    another_sequence.push_back(a.sample(logits, t, 1));
  }
  EXPECT_NE(forward, another_seed);
  EXPECT_NE(forward, another_sequence);
}

TEST(Sampling, TopKKeepsTheLikeliestTiesToTheLowerToken) {
  for (const auto& [token, count] : histogram({.temperature = 5, .top_k = 2}))
    EXPECT_TRUE(token == 1 || token == 3) << token << " drawn " << count << " times";
  EXPECT_EQ(histogram({.temperature = 5, .top_k = 1}), (std::map<int32_t, int>{{1, 20000}}));
  EXPECT_EQ(histogram({.temperature = 5, .top_k = 99}).size(), 5u);
}

TEST(Sampling, TopPKeepsTheFewestThatReachTheSum) {
  // At temperature 1 the probabilities are about .39 .39 .14 .05 .007.
  const auto tokens = [](double top_p) {
    std::set<int32_t> seen;
    for (const auto& [token, count] : histogram({.temperature = 1, .top_p = top_p}))
      seen.insert(token);
    return seen;
  };
  EXPECT_EQ(tokens(0.01), (std::set<int32_t>{1}));
  EXPECT_EQ(tokens(0.5), (std::set<int32_t>{1, 3}));
  EXPECT_EQ(tokens(0.9), (std::set<int32_t>{1, 2, 3}));
  EXPECT_EQ(tokens(1.0).size(), 5u);
  // The kept ones keep their proportions.
  const auto counts = histogram({.temperature = 1, .top_p = 0.9});
  EXPECT_NEAR(counts.at(2) / 20000.0, std::exp(-1.0) / (2 + std::exp(-1.0)), 0.02);
}

TEST(Sampling, TopPIsTakenOfWhatTopKLeft) {
  const auto counts = histogram({.temperature = 1, .top_k = 3, .top_p = 0.5});
  EXPECT_EQ(counts.size(), 2u);
}

TEST(Sampling, ExtremeTemperaturesAreSafe) {
  EXPECT_EQ(histogram({.temperature = 1e-30}, 100).size(), 2u);  // the two equal maxima
  EXPECT_EQ(histogram({.temperature = 1e30}).size(), 5u);
  const std::vector<float> huge{-3e38f, 3e38f, 1e38f};
  Sampler sampler({.temperature = 1});
  EXPECT_EQ(sampler.sample(huge, 0), 1);
}

TEST(Sampling, ExcludedTokensAreNeverDrawn) {
  const float none = -std::numeric_limits<float>::infinity();
  const std::vector<float> masked{none, 0.0f, none, 0.0f};
  Sampler sampler({.temperature = 1});
  for (uint32_t t = 0; t < 1000; ++t) EXPECT_EQ(sampler.sample(masked, t) % 2, 1);
}

TEST(Sampling, BadParametersAreNamed) {
  const auto message = [](const SamplingOptions& options) -> std::string {
    try {
      Sampler sampler(options);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_NE(message({.temperature = -1}).find("temperature"), std::string::npos);
  EXPECT_NE(message({.temperature = std::nan("")}).find("temperature"), std::string::npos);
  EXPECT_NE(message({.temperature = INFINITY}).find("temperature"), std::string::npos);
  EXPECT_NE(message({.top_k = -2}).find("top-k"), std::string::npos);
  EXPECT_NE(message({.top_p = 0}).find("top-p"), std::string::npos);
  EXPECT_NE(message({.top_p = 1.01}).find("top-p"), std::string::npos);
  EXPECT_NE(message({.top_p = std::nan("")}).find("top-p"), std::string::npos);
}

TEST(Sampling, BrokenLogitsAreAnError) {
  const float inf = std::numeric_limits<float>::infinity();
  EXPECT_THROW(argmax(std::vector<float>{1, std::nanf(""), 2}), Error);
  EXPECT_THROW(argmax(std::vector<float>{1, inf, 2}), Error);
  EXPECT_THROW(argmax(std::vector<float>{-inf, -inf}), Error);
  EXPECT_THROW(argmax(std::vector<float>{}), Error);
}

}  // namespace
}  // namespace sol
